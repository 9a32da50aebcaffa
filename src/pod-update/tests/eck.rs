//! Templates of ECK, before and after a person has edited an `Elasticsearch`.

mod template;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    Abilities, Arrival, Content, Declaration, Ignore, Source, SourceKind, Update, UpdateStep,
    compare, uses,
};
use template::Edited;

const ENGINE: &str = "elasticsearch";
/// Secret that the keystore is made of.
const SECURE: &str = "logs-es-secure-settings";

fn edited(change: impl FnOnce(&mut Edited)) -> Value {
    let mut edited = Edited::default();
    change(&mut edited);
    edited.template()
}

fn update(wanted: &Value, actual: &Value) -> Update {
    with_content(wanted, &Content::default(), actual, &Content::default())
}

fn with_content(wanted: &Value, new: &Content, actual: &Value, old: &Content) -> Update {
    let wanted = Declaration { template: wanted, content: new };
    let actual = Declaration { template: actual, content: old };
    compare(wanted, actual, ENGINE, Abilities { resize: true })
}

fn fields(update: &Update) -> Vec<&str> {
    update.because.iter().map(|difference| difference.field.as_str()).collect()
}

fn variable(name: &'static str, value: &str) -> (&'static str, Value) {
    (name, json!({"name": name, "value": value}))
}

#[test] // proves UPDATE-85
fn each_edit_of_a_person_has_its_step_and_names_its_field() {
    type Change = fn(&mut Edited);
    let rows: [(&str, Change, UpdateStep, &str); 12] = [
        (
            "a setting",
            |all| all.config_hash = "7",
            UpdateStep::Restart,
            r#"metadata.annotations["elasticsearch.k8s.elastic.co/config-hash"]"#,
        ),
        (
            "a restart",
            |all| all.restart_trigger = Some("1"),
            UpdateStep::Restart,
            r#"metadata.annotations["eck.k8s.elastic.co/restart-trigger"]"#,
        ),
        (
            "a role, which is a setting and a label",
            |all| (all.config_hash, all.master) = ("7", false),
            UpdateStep::Restart,
            r#"metadata.annotations["elasticsearch.k8s.elastic.co/config-hash"]"#,
        ),
        ("a label", |all| all.team = "logs", UpdateStep::Relabel, "metadata.labels.team"),
        ("an annotation", |all| all.note = "two", UpdateStep::Relabel, "metadata.annotations.note"),
        (
            "more memory",
            |all| all.memory = "4Gi",
            UpdateStep::Resize,
            "spec.containers[elasticsearch].resources.limits.memory",
        ),
        (
            // The init containers would keep 2 GiB, and the pod as much of its Kubernetes node.
            "less memory",
            |all| all.memory = "1Gi",
            UpdateStep::Replace,
            "spec.initContainers[elastic-internal-suspend].resources.limits.memory",
        ),
        (
            "an image, of which init containers copy files",
            |all| all.image = "elasticsearch:8.19.1",
            UpdateStep::Replace,
            "spec.initContainers[elastic-internal-init-filesystem].image",
        ),
        (
            "a variable",
            |all| all.variable = variable("A", "2"),
            UpdateStep::Replace,
            "spec.containers[elasticsearch].env[A].value",
        ),
        (
            "first secure settings",
            |all| all.secure_settings = true,
            UpdateStep::Replace,
            "spec.initContainers[elastic-internal-init-keystore]",
        ),
        (
            "a volume",
            |all| all.volume = true,
            UpdateStep::Replace,
            "spec.containers[elasticsearch].volumeMounts[mine]",
        ),
        (
            "TLS of HTTP",
            |all| all.http_tls = false,
            UpdateStep::Replace,
            "spec.containers[elasticsearch].env[READINESS_PROBE_PROTOCOL].value",
        ),
    ];
    for (name, change, step, field) in rows {
        let found = update(&edited(change), &edited(|_| {}));
        assert_eq!(found.step, step, "{name}: {found:#?}");
        assert_eq!(found.because[0].field, field, "{name}: {found:#?}");
    }
}

#[test] // proves UPDATE-86
fn files_of_its_hooks_with_all_labels_and_annotations_need_no_other_pod() {
    type Change = fn(&mut Edited);
    let rows: [(Change, UpdateStep); 3] = [
        (|all| all.team = "logs", UpdateStep::Relabel),
        (|all| all.note = "two", UpdateStep::Relabel),
        (|all| all.config_hash = "7", UpdateStep::Restart),
    ];
    for (change, step) in rows {
        let actual = edited(|all| all.node_labels = true);
        let with = |change: Change| {
            edited(|all| {
                all.node_labels = true;
                change(all);
            })
        };
        let found = update(&with(change), &actual);
        assert_eq!(found.step, step, "{found:#?}");
        // Nobody knows who reads a person's own file of them.
        let own = |mut template: Value| {
            let volume = &mut template["spec"]["volumes"][0];
            volume["name"] = json!("mine");
            template["spec"]["containers"][0]["volumeMounts"][0]["name"] = json!("mine");
            template
        };
        let found = update(&own(with(change)), &own(actual));
        let expected =
            if step == UpdateStep::Relabel { UpdateStep::Replace } else { UpdateStep::Restart };
        assert_eq!(found.step, expected, "{found:#?}");
    }
}

#[test] // proves UPDATE-86
fn the_engine_s_variables_are_no_other_change_in_init_containers() {
    let from = |object: &str| {
        let reference = json!({"configMapKeyRef": {"name": object, "key": "A"}});
        ("A", json!({"name": "A", "valueFrom": reference}))
    };
    for (old, new) in [
        (variable("A", "1"), variable("A", "2")),
        (variable("A", "1"), variable("B", "1")),
        (variable("A", "1"), from("env")),
        (from("env"), from("other")),
    ] {
        let actual = edited(|all| all.variable = old);
        let wanted = edited(|all| all.variable = new);
        let found = update(&wanted, &actual);
        assert!(!fields(&found).is_empty(), "{found:#?}");
        for field in fields(&found) {
            assert!(field.starts_with("spec.containers[elasticsearch].env["), "{found:#?}");
        }
    }
    // A ConfigMap behind it needs a new container alone: init containers have read it, too.
    let used = uses(&edited(|all| all.variable = from("env")), ENGINE);
    let of_env: Vec<Arrival> =
        used.iter().filter(|used| used.source.name == "env").map(|used| used.arrival).collect();
    assert_eq!(of_env, [Arrival::NewContainer]);
}

#[test] // proves UPDATE-86
fn a_variable_of_an_init_container_counts_if_it_is_another_change() {
    type Both = fn(&mut Value);
    let as_is: Both = |_| {};
    let rows: [(&str, Both, &str, &str, bool); 7] = [
        ("the same", as_is, "2", "2", false),
        ("of the engine alone", as_is, "2", "1", false),
        ("its own", as_is, "1", "2", true),
        ("to another value", as_is, "2", "3", true),
        ("from another value", |init| init["env"][0]["value"] = json!("0"), "2", "2", true),
        (
            "its command has the name",
            |init| init["command"] = json!(["sh", "-c", "elasticsearch-plugin install $A"]),
            "2",
            "2",
            true,
        ),
        (
            "it runs as long as the pod",
            |init| init["restartPolicy"] = json!("Always"),
            "2",
            "2",
            true,
        ),
    ];
    for (name, both, of_engine, of_init, counts) in rows {
        let mut actual = edited(|_| {});
        both(&mut actual["spec"]["initContainers"][0]);
        let mut wanted = actual.clone();
        for (list, value) in [("containers", of_engine), ("initContainers", of_init)] {
            if value != "1" {
                wanted["spec"][list][0]["env"][0]["value"] = json!(value);
            }
        }
        let found = update(&wanted, &actual);
        let is_of_init = |field: &&str| field.starts_with("spec.initContainers");
        assert_eq!(fields(&found).iter().any(is_of_init), counts, "{name}: {found:#?}");
    }
    // Nobody says that those of others are copies.
    let foreign = |value| {
        let mut template = edited(|all| all.variable = variable("A", value));
        template["metadata"]["labels"]["elasticsearch.k8s.elastic.co/cluster-name"] = Value::Null;
        template
    };
    let found = update(&foreign("2"), &foreign("1"));
    assert_eq!(fields(&found).len(), 4, "{found:#?}");
}

fn secure(digest: &str) -> Content {
    let mut content = Content::default();
    let source = Source { kind: SourceKind::Secret, name: SECURE.to_owned() };
    let keys = [("s3.client.default.secret_key".to_owned(), digest.to_owned())];
    content.add(source, keys.into(), Ignore::Nothing);
    content
}

/// The hash changes with them, but only the init container's Secret tells them from a setting.
#[test] // proves UPDATE-87
fn changed_secure_settings_need_another_pod_and_are_named_with_their_key() {
    let actual = edited(|all| all.secure_settings = true);
    let wanted = edited(|all| {
        all.secure_settings = true;
        all.config_hash = "7";
    });
    let found = with_content(&wanted, &secure("new"), &actual, &secure("old"));
    assert_eq!(found.step, UpdateStep::Replace, "{found:#?}");
    assert_eq!(
        fields(&found),
        [
            "Secret logs-es-secure-settings, key s3.client.default.secret_key, in \
             spec.initContainers[elastic-internal-init-keystore]\
             .volumeMounts[/mnt/elastic-internal/secure-settings]",
            r#"metadata.annotations["elasticsearch.k8s.elastic.co/config-hash"]"#,
        ]
    );
    let found = with_content(&wanted, &secure("old"), &actual, &secure("old"));
    assert_eq!(found.step, UpdateStep::Restart, "{found:#?}");
    let needs_pod: BTreeSet<(String, Option<String>)> = uses(&wanted, ENGINE)
        .into_iter()
        .filter(|used| used.arrival == Arrival::NewPod)
        .map(|used| (used.source.name, used.key))
        .collect();
    let script = |key: &str| ("logs-es-scripts".to_owned(), Some(key.to_owned()));
    assert_eq!(
        needs_pod,
        [script("prepare-fs.sh"), script("suspend.sh"), (SECURE.to_owned(), None)].into()
    );
}
