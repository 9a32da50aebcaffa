//! `kubectl stayput init`: what it makes from nothing, a second run, and what others made.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use stayput_http::https::{ONLY_1_3, Pem, Tls};
use stayput_standin::apiserver::{Fault, How};

use super::fixture::Fixture;

const SECRETS: [&str; 3] = ["logs-manager-ca", "logs-manager-ca-key", "logs-manager-tls"];

impl Fixture {
    /// A StatefulSet without stayput, whose engine has no TLS.
    async fn stateful_set(&self, env: Value) {
        self.create_set(stateful_set(&env)).await;
    }

    async fn definition_of_cert_manager(&self) {
        let definition = json!({
            "metadata": {"name": "certificates.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io", "scope": "Namespaced",
                "names": {"plural": "certificates", "kind": "Certificate"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}],
            },
        });
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let definition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }

    async fn create_set(&self, set: Value) {
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), "default");
        let set = serde_json::from_value(set).unwrap();
        sets.create(&PostParams::default(), &set).await.unwrap();
    }

    /// A pod as an operator labels it; whether its engine has TLS is not to be seen.
    async fn pod_of_operator(&self, label: &str) {
        self.pod_of_operator_with(label, json!({})).await;
    }

    /// With these fields of its container.
    async fn pod_of_operator_with(&self, label: &str, fields: Value) {
        let mut container = json!({
            "name": "opensearch", "image": "opensearchproject/opensearch:2.19.3",
        });
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "logs-0", "labels": {label: "logs"}},
            "spec": {"containers": [container]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn secret(&self, name: &str) {
        let secret = Secret {
            metadata: kube::api::ObjectMeta { name: Some(name.into()), ..Default::default() },
            ..Secret::default()
        };
        self.secrets().create(&PostParams::default(), &secret).await.unwrap();
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn init(&self, options: &str) -> Value {
        self.json(&format!("init logs {options}")).await
    }
}

/// A StatefulSet of three nodes with these variables.
fn stateful_set(env: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "logs"},
        "spec": {
            "serviceName": "logs",
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {
                "metadata": {"labels": {"app": "logs", "team": "search"}},
                "spec": {"containers": [{
                    "name": "opensearch", "image": "opensearchproject/opensearch:2.19.3",
                    "env": env,
                }]},
            },
        },
    })
}

fn without_tls() -> Value {
    json!([{"name": "DISABLE_SECURITY_PLUGIN", "value": "true"}])
}

fn results(output: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let objects = output["objects"].as_array().unwrap().iter();
    objects.map(|object| (text(&object["name"]), text(&object["result"]))).collect()
}

fn all(result: &str) -> Vec<(String, String)> {
    let names = [
        "logs-manager-ca-key",
        "logs-manager-ca",
        "logs-manager-tls",
        "cluster-jwks",
        "stayput-logs-certificates",
        "stayput-logs-certificates",
        "stayput-clusters",
        "logs",
    ];
    names.map(|name| (name.to_owned(), result.to_owned())).to_vec()
}

#[tokio::test] // proves RESTART-5
async fn all_is_made_and_a_second_run_changes_nothing() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    let before = fixture.server.version();
    let dry = fixture.init("--dry-run").await;
    assert_eq!(results(&dry), all("made"));
    assert_eq!(fixture.server.version(), before, "a dry run writes nothing");

    let made = fixture.init("").await;
    assert_eq!(results(&made), all("made"));
    let next = made["next"][0].as_str().unwrap();
    assert!(next.contains("get statefulset logs") && next.contains("inject"), "{next}");
    let version = fixture.server.version();
    assert_eq!(results(&fixture.init("").await), all("unchanged"));
    assert_eq!(fixture.server.version(), version);

    let data = |secret: Secret, key: &str| secret.data.unwrap().remove(key).unwrap().0;
    let ca = data(fixture.secrets().get("logs-manager-ca").await.unwrap(), "ca.crt");
    let identity = fixture.secrets().get("logs-manager-tls").await.unwrap();
    assert_eq!(identity.type_.as_deref(), Some("kubernetes.io/tls"));
    Tls::new(&Pem::new("ca.crt", ca), None, ONLY_1_3).unwrap();

    let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), "default");
    let keys = maps.get("cluster-jwks").await.unwrap().data.unwrap();
    assert_eq!(keys["issuer"], fixture.server.issuer());
    let keys: Value = serde_json::from_str(&keys["jwks.json"]).unwrap();
    assert_eq!(keys, fixture.server.key_set());

    let cluster = fixture.clusters().get("logs").await.unwrap();
    let checked = cluster.check().unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert_eq!(cluster.spec.manager.ca_secret, "logs-manager-ca");
    assert_eq!(checked.pods.to_string(), "app=logs");
}

/// The reconciler may change what was made by name, and cannot read any other Secret by this.
#[tokio::test] // proves RESTART-5
async fn the_right_to_renew_is_for_these_objects_alone() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    fixture.init("").await;
    let roles: Api<Role> = Api::namespaced(fixture.client.clone(), "default");
    let role = roles.get("stayput-logs-certificates").await.unwrap();
    for rule in role.rules.unwrap() {
        let mut names = rule.resource_names.unwrap();
        names.sort();
        match rule.resources.unwrap()[0].as_str() {
            "secrets" => assert_eq!(names, SECRETS),
            "configmaps" => assert_eq!(names, ["cluster-jwks"]),
            other => panic!("{other}"),
        }
        assert_eq!(rule.verbs, ["get", "patch"]);
    }
    let bindings: Api<RoleBinding> = Api::namespaced(fixture.client.clone(), "default");
    let binding = bindings.get("stayput-logs-certificates").await.unwrap();
    let subject = &binding.subjects.unwrap()[0];
    assert_eq!(
        (subject.namespace.as_deref(), subject.name.as_str()),
        (Some("stayput"), "stayput-reconciler")
    );
}

/// The installation gives the reconciler no rights in any namespace; who runs `init` gives them in this one.
#[tokio::test] // proves RESTART-5
async fn the_rights_to_restart_are_given_in_this_namespace() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    fixture.init("").await;
    let bindings: Api<RoleBinding> = Api::namespaced(fixture.client.clone(), "default");
    let binding = bindings.get("stayput-clusters").await.unwrap();
    let role = &binding.role_ref;
    assert_eq!((role.kind.as_str(), role.name.as_str()), ("ClusterRole", "stayput-reconciler"));
    assert_eq!(binding.subjects.unwrap()[0].name, "stayput-reconciler");
    assert!(bindings.get_opt("stayput-declared").await.unwrap().is_none(), "no nodes are made");
    // The same by hand, as a document has it.
    let unlabel = Patch::Merge(json!({"metadata": {"labels": null}}));
    bindings.patch("stayput-clusters", &PatchParams::default(), &unlabel).await.unwrap();
    assert_eq!(results(&fixture.init("").await), all("unchanged"));
}

#[tokio::test] // proves RESTART-5
async fn what_was_lost_is_made_again_and_what_others_made_is_left() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    fixture.init("").await;
    let before = fixture.secrets().get("logs-manager-ca").await.unwrap();
    fixture.secrets().delete("logs-manager-tls", &DeleteParams::default()).await.unwrap();
    let again = fixture.init("").await;
    let made: Vec<_> = results(&again).into_iter().filter(|(_, is)| is == "made").collect();
    assert_eq!(made, [("logs-manager-tls".to_owned(), "made".to_owned())]);
    assert_eq!(fixture.secrets().get("logs-manager-ca").await.unwrap(), before);

    // Without the label it is somebody else's.
    let unlabel = Patch::Merge(json!({"metadata": {"labels": null}}));
    fixture.secrets().patch(SECRETS[2], &PatchParams::default(), &unlabel).await.unwrap();
    fixture.secrets().delete(SECRETS[0], &DeleteParams::default()).await.unwrap();
    let version = fixture.server.version();
    let error = fixture.fails("init logs", 1).await;
    assert!(
        error.contains("Secret logs-manager-tls was not made by stayput")
            && error.contains("delete it, and run `kubectl stayput -n default init logs`"),
        "{error}"
    );
    assert_eq!(fixture.server.version(), version);
}

#[tokio::test] // proves RESTART-5
async fn an_engine_with_tls_needs_its_ca_and_credentials_their_permission() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(json!([])).await;
    let error = fixture.fails("init logs", 1).await;
    assert!(error.contains("--engine-http") && error.contains("--engine-ca SECRET"), "{error}");
    assert_eq!(fixture.secrets().list(&ListParams::default()).await.unwrap().items.len(), 3);
    let made = fixture.init("--engine-ca logs-ca --credentials logs-admin").await;
    assert_eq!(results(&made).last().unwrap().1, "made");
    let next = made["next"][0].as_str().unwrap();
    let annotate =
        "kubectl -n default annotate --overwrite secret logs-admin stayput.dev/allow=logs";
    assert_eq!(next, annotate);
    let engine = fixture.clusters().get("logs").await.unwrap().spec.engine;
    assert_eq!(engine.ca_secret.as_deref(), Some("logs-ca"));
    assert_eq!(engine.credentials_secret.as_deref(), Some("logs-admin"));
}

/// With cert-manager's certificate the reconciler needs cert-manager's CA.
#[tokio::test] // proves OPERATE-21
async fn cert_manager_is_refused_where_the_cluster_has_another_ca() {
    let fixture = Fixture::empty().await;
    fixture.definition_of_cert_manager().await;
    fixture.stateful_set(without_tls()).await;
    fixture.init("").await;
    let version = fixture.server.version();
    let error = fixture.fails("init logs --cert-manager ClusterIssuer/people", 1).await;
    let patch = r#"`kubectl -n default patch searchcluster logs --type merge -p '{"spec":{"manager":{"caSecret":"logs-manager-tls"}}}'`"#;
    assert!(error.contains("the CA in Secret logs-manager-ca") && error.contains(patch), "{error}");
    assert_eq!(fixture.server.version(), version, "nothing was changed");
    // As the command does.
    fixture.change(json!({"spec": {"manager": {"caSecret": "logs-manager-tls"}}})).await;
    let made = fixture.init("--cert-manager ClusterIssuer/people").await;
    assert_eq!(results(&made)[0], ("logs-manager-tls".to_owned(), "made".to_owned()));
    assert_eq!(made["objects"][0]["kind"], "Certificate");
}

/// The SearchCluster selects the pods that the StatefulSet selects, and no others.
#[tokio::test] // proves OPERATE-23
async fn the_whole_selector_of_the_stateful_set_counts() {
    for labels in [json!({"app": "logs"}), json!(null)] {
        let fixture = Fixture::empty().await;
        let mut set = stateful_set(&without_tls());
        let role = json!([{"key": "team", "operator": "In", "values": ["search"]}]);
        set["spec"]["selector"] = json!({"matchLabels": labels, "matchExpressions": role});
        fixture.create_set(set).await;
        let made = fixture.init("").await;
        assert_eq!(results(&made).last().unwrap().1, "made");
        let selector = fixture.clusters().get("logs").await.unwrap().spec.pods.selector;
        assert_eq!(json!(selector.match_labels), labels);
        assert_eq!(json!(selector.match_expressions), role);
    }
}

#[tokio::test] // proves OPERATE-23
async fn a_name_that_no_object_can_have_is_wrong_usage() {
    let fixture = Fixture::bare().await;
    let long = "a".repeat(233);
    for line in ["init ../logs", "init Logs", &format!("init {long}"), "-n Search status logs"] {
        let error = fixture.fails(line, 64).await;
        assert!(error.contains("invalid value"), "{line}: {error}");
    }
}

#[tokio::test] // proves RESTART-5
async fn without_pods_or_without_the_reconciler_it_says_what_to_do() {
    let fixture = Fixture::empty().await;
    let error = fixture.fails("init logs", 1).await;
    assert!(error.contains("no pods are found: say which with --selector"), "{error}");
    assert_eq!(fixture.run("init logs --selector app").await.code, 64);

    let bare = Fixture::bare().await;
    bare.stateful_set(without_tls()).await;
    let error = bare.fails("init logs", 1).await;
    assert!(error.contains("install the reconciler first"), "{error}");
}

/// `kubectl apply -k deploy/` ends before several apiservers serve SearchClusters.
#[tokio::test] // proves RESTART-5
async fn a_definition_that_was_just_applied_is_waited_for() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    let not_yet = Fault::new(How::Refuse(404)).resource("searchclusters").times(3);
    fixture.server.inject(not_yet);
    assert_eq!(results(&fixture.init("").await), all("made"));
    assert!(fixture.server.is_faultless());
}

/// What ECK and the OpenSearch operator keep is found by their names for it; docs/operators.md.
#[tokio::test] // proves OPERATE-20
async fn credentials_and_ca_of_an_operator_are_found() {
    for (label, credentials, authority, server_name) in [
        (
            "elasticsearch.k8s.elastic.co/cluster-name",
            "logs-es-elastic-user",
            "logs-es-http-certs-public",
            "logs-es-http",
        ),
        ("opensearch.org/opensearch-cluster", "logs-admin-password", "logs-ca", "logs"),
        ("opster.io/opensearch-cluster", "logs-admin-password", "logs-ca", "logs"),
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

#[tokio::test] // proves MANIFEST-4
async fn a_rollout_without_the_rules_is_said_before_the_command_that_begins_it() {
    let fixture = Fixture::empty().await;
    fixture.stateful_set(without_tls()).await;
    let made = fixture.init("--dry-run").await;
    let note = made["notes"][0].as_str().unwrap();
    assert!(
        note.contains("RollingUpdate") && note.contains("not when the cluster is green"),
        "{note}"
    );
    assert!(note.contains("patch statefulset logs --namespace default"), "{note}");
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let on_delete = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
    sets.patch("logs", &PatchParams::default(), &Patch::Merge(on_delete)).await.unwrap();
    let made = fixture.init("--dry-run").await;
    assert!(made["next"][0].as_str().unwrap().contains("inject"), "{made}");
    assert_eq!(made["notes"], Value::Null);
}
