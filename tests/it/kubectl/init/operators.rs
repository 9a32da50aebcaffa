//! Clusters of ECK and of the OpenSearch operator.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::Fixture;

impl Fixture {
    /// A pod as an operator labels it; whether its engine has TLS is not to be seen.
    async fn pod_of_operator(&self, label: &str) {
        self.pod_of_operator_with(label, json!({})).await;
    }

    /// With these fields of its container. The OpenSearch operator also makes a pod with which a cluster forms.
    async fn pod_of_operator_with(&self, label: &str, fields: Value) {
        let mut labels = BTreeMap::from([(label.to_owned(), "logs")]);
        if label.ends_with("/opensearch-cluster") {
            self.labelled_pod("logs-bootstrap-0", &labels, json!({})).await;
            labels.insert(label.replace("-cluster", "-nodepool"), "nodes");
        }
        self.labelled_pod("logs-nodes-0", &labels, fields).await;
    }

    async fn labelled_pod(&self, name: &str, labels: &BTreeMap<String, &str>, fields: Value) {
        let mut container = json!({
            "name": "opensearch", "image": "opensearchproject/opensearch:2.19.3",
        });
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [container]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }
}

/// What ECK and the OpenSearch operator keep is found by their names for it; docs/operators.md.
#[tokio::test] // proves OPERATE-20
async fn credentials_and_ca_of_an_operator_are_found() {
    for (label, nodes, credentials, authority, server_name) in [
        (
            "elasticsearch.k8s.elastic.co/cluster-name",
            &[][..],
            "logs-es-elastic-user",
            "logs-es-http-certs-public",
            "logs-es-http",
        ),
        (
            "opensearch.org/opensearch-cluster",
            &["opensearch.org/opensearch-nodepool"],
            "logs-admin-password",
            "logs-ca",
            "logs",
        ),
        (
            "opster.io/opensearch-cluster",
            &["opster.io/opensearch-nodepool"],
            "logs-admin-password",
            "logs-ca",
            "logs",
        ),
    ] {
        let fixture = Fixture::empty().await;
        fixture.pod_of_operator(label).await;
        let error = fixture.fails("init logs", 1).await;
        assert!(error.contains("--engine-ca"), "{label}: {error}");
        for name in [credentials, authority] {
            fixture.secret(name).await;
        }
        let made = fixture.init("").await;
        let next = made["next"][0].as_str().unwrap();
        let annotate = format!("annotate --overwrite secret {credentials} stayput.dev/allow=logs");
        assert!(next.ends_with(&annotate), "{next}");
        let spec = fixture.clusters().get("logs").await.unwrap().spec;
        let selector = spec.pods.selector.match_labels.unwrap();
        assert_eq!(selector.get(label).map(String::as_str), Some("logs"));
        let of_nodes = spec.pods.selector.match_expressions.unwrap_or_default();
        let of_nodes: Vec<&str> = of_nodes.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(of_nodes, nodes, "{label}");
        assert_eq!(spec.engine.credentials_secret.as_deref(), Some(credentials));
        assert_eq!(spec.engine.ca_secret.as_deref(), Some(authority));
        assert_eq!(spec.engine.server_name.as_deref(), Some(server_name));
    }
}

/// ECK has to be told that it deletes no pod, and only after it has made those with the manager.
#[tokio::test] // proves UPDATE-101
async fn what_an_operators_cluster_needs_for_changes_in_place_is_said_until_it_has_it() {
    const MODE: &str = r#"`kubectl --namespace default patch searchcluster logs --type merge --patch '{"spec":{"update":{"mode":"inPlace"}}}'`"#;
    const BUDGET: &str = r#"`kubectl --namespace default patch elasticsearches.elasticsearch.k8s.elastic.co logs --type merge --patch '{"spec":{"updateStrategy":{"changeBudget":{"maxUnavailable":0}}}}'`"#;
    let once = "once all of them have the manager: ";
    for (label, expected) in [
        ("elasticsearch.k8s.elastic.co/cluster-name", format!("{once}{BUDGET} and {MODE}")),
        ("opensearch.org/opensearch-cluster", format!("{once}{MODE}")),
    ] {
        let fixture = Fixture::empty().await;
        fixture.pod_of_operator(label).await;
        let made = fixture.init("--engine-http").await;
        let note = made["notes"][0].as_str().unwrap();
        assert!(note.ends_with(&expected), "{note}");
        fixture.change(json!({"spec": {"update": {"mode": "inPlace"}}})).await;
        assert_eq!(fixture.init("").await["notes"], Value::Null, "{label}");
    }
}

/// What is given on the command line counts.
#[tokio::test] // proves OPERATE-20
async fn options_count_before_what_an_operator_keeps() {
    let fixture = Fixture::empty().await;
    fixture.pod_of_operator("opensearch.org/opensearch-cluster").await;
    fixture.init("--engine-http --credentials mine").await;
    let engine = fixture.clusters().get("logs").await.unwrap().spec.engine;
    assert_eq!(engine.credentials_secret.as_deref(), Some("mine"));
    assert_eq!((engine.ca_secret, engine.server_name), (None, None));
}

/// The OpenSearch operator makes a password whether its engine has users or not. Over http it would be sent in plain text,
/// which the SearchCluster refuses.
#[tokio::test] // proves OPERATE-20
async fn an_operators_engine_without_tls_gets_no_credentials_unless_they_are_named() {
    const LABEL: &str = "opensearch.org/opensearch-cluster";
    let probe = |scheme: &str| {
        let curl = format!("curl -k --silent --fail {scheme}://localhost:9200");
        json!({"startupProbe": {"exec": {"command": ["/bin/bash", "-c", curl]}}})
    };
    let fixture = Fixture::empty().await;
    fixture.pod_of_operator_with(LABEL, probe("http")).await;
    fixture.secret("logs-admin-password").await;
    let dry = fixture.init("--dry-run --credentials mine").await;
    let message = dry["objects"].as_array().unwrap().last().unwrap()["message"].to_string();
    assert!(message.contains("can be read on the network"), "{message}");
    let made = fixture.init("").await;
    let message = made["objects"].as_array().unwrap().last().unwrap()["message"].to_string();
    assert!(message.contains("engine by http, without credentials"), "{message}");
    let next = made["next"][0].as_str().unwrap();
    let command = "get opensearchclusters.opensearch.org logs --output yaml | kubectl stayput inject | kubectl";
    assert!(next.contains(command), "{next}");
    let cluster = fixture.clusters().get("logs").await.unwrap();
    cluster.check().unwrap_or_else(|faults| panic!("{faults:#?}"));
    let engine = cluster.spec.engine;
    assert_eq!((engine.credentials_secret, engine.ca_secret), (None, None));

    let fixture = Fixture::empty().await;
    fixture.pod_of_operator_with(LABEL, probe("http")).await;
    fixture.init("--credentials mine").await;
    let cluster = fixture.clusters().get("logs").await.unwrap();
    cluster.check().unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert_eq!(cluster.spec.engine.credentials_secret.as_deref(), Some("mine"));

    let fixture = Fixture::empty().await;
    fixture.pod_of_operator_with(LABEL, probe("https")).await;
    let error = fixture.fails("init logs", 1).await;
    assert!(error.contains("the engine has TLS: run it again with --engine-ca"), "{error}");
}

/// What the pods do not say, the object says from which the operator makes them.
#[tokio::test] // proves OPERATE-20
async fn whether_an_operators_engine_has_tls_is_read_from_its_object() {
    for (label, group, kind, resource, spec) in [
        (
            "opensearch.org/opensearch-cluster",
            "opensearch.org",
            "OpenSearchCluster",
            "opensearchclusters",
            json!({"security": {"tls": {"http": {"enabled": false}}}}),
        ),
        (
            "opensearch.org/opensearch-cluster",
            "opensearch.org",
            "OpenSearchCluster",
            "opensearchclusters",
            json!({}),
        ),
        (
            "elasticsearch.k8s.elastic.co/cluster-name",
            "elasticsearch.k8s.elastic.co",
            "Elasticsearch",
            "elasticsearches",
            json!({"http": {"tls": {"selfSignedCertificate": {"disabled": true}}}}),
        ),
    ] {
        let fixture = Fixture::empty().await;
        fixture.pod_of_operator(label).await;
        fixture.secret("logs-admin-password").await;
        fixture.secret("logs-es-elastic-user").await;
        let definition = json!({
            "metadata": {"name": format!("{resource}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": resource, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}],
            },
        });
        let definitions: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
        let definition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let kind = GroupVersionKind::gvk(group, "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, resource);
        let objects: Api<DynamicObject> =
            Api::namespaced_with(fixture.client.clone(), "default", &resource);
        let object = DynamicObject::new("logs", &resource).data(json!({ "spec": spec }));
        objects.create(&PostParams::default(), &object).await.unwrap();
        fixture.init("").await;
        let cluster = fixture.clusters().get("logs").await.unwrap();
        cluster.check().unwrap_or_else(|faults| panic!("{label}: {faults:#?}"));
        assert_eq!(cluster.spec.engine.credentials_secret, None, "{label}");
    }
}
