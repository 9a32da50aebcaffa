//! `kubectl stayput init`: what it makes from nothing, a second run, and what others made.

mod operators;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
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
