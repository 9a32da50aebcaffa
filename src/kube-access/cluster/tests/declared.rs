//! Specs with `nodeSets`.

use serde_json::{Value, json};
use stayput_pod_update::{Source, SourceKind, UpdateStep};
use stayput_restart::OnConfigChange;

use crate::cluster::sources::Auth;
use crate::cluster::spec::SearchCluster;
use crate::cluster::tests::{read, set, smallest};

/// The smallest declared cluster.
fn declared() -> Value {
    let claim = json!({"metadata": {"name": "data"}, "spec": {}});
    let mut object = smallest();
    object["spec"] = json!({
        "engine": {"scheme": "http", "distribution": "opensearch", "version": "2.19.3"},
        "nodeSets": [{"name": "all", "count": 3, "volumeClaimTemplates": [claim]}],
    });
    object
}

#[test] // proves DECLARE-10
fn what_a_declared_cluster_leaves_out_follows_from_its_name() {
    let cluster = read(declared());
    let checked = cluster.check().unwrap();
    assert_eq!(checked.pods.to_string(), "stayput.dev/cluster=logs");
    assert_eq!(checked.auth, Auth::ServiceAccountToken);
    let config = Source { kind: SourceKind::Secret, name: "logs-all-config".into() };
    assert_eq!(checked.sources.objects("logs-all-12"), [config]);
    assert_eq!(checked.policy.on_config_change, OnConfigChange::Auto);
    let allowed = |step: UpdateStep| checked.policy.update.contains(&step);
    assert!(allowed(UpdateStep::Container) && !allowed(UpdateStep::Replace));
    let completed = cluster.completed();
    assert_eq!(completed.spec.manager.ca_secret, "logs-manager-ca");
    assert_eq!(completed.clone().completed(), completed, "a second time changes nothing");
    completed.check().expect("kubectl-stayput reads and checks it so");
}

#[test]
fn what_it_says_is_kept() {
    let mut object = declared();
    set(&mut object, "manager", json!({"caSecret": "ca", "auth": {"jwtKeySecret": "key"}}));
    set(&mut object, "config", json!({"sources": [{"secret": "{pod}-config"}]}));
    set(&mut object, "restart", json!({"onConfigChange": "coordinated"}));
    let checked = read(object).check().unwrap();
    assert_eq!(checked.auth, Auth::JwtKey { secret: "key".into() });
    assert_eq!(checked.sources.objects("logs-all-1")[0].name, "logs-all-1-config");
    assert_eq!(checked.policy.on_config_change, OnConfigChange::Coordinated);
}

#[test]
fn an_attached_cluster_is_left_as_it_is() {
    let attached = read(smallest());
    assert!(attached.check().unwrap().policy.update.is_empty());
    assert_eq!(attached.clone().completed(), attached);
}

#[test]
fn a_declaration_is_read_into_plain_data() {
    let mut object = declared();
    let policy = json!({"whenScaled": "Delete"});
    object["spec"]["nodeSets"][0]["persistentVolumeClaimRetentionPolicy"] = policy;
    let declaration = read(object).declaration("a:b").unwrap();
    assert_eq!(declaration.engine.image(), "opensearchproject/opensearch:2.19.3");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(declaration.manager.image, None);
    assert_eq!(declaration.manager.image_of_new_sets, format!("stayput/manager:{version}"));
    let retention = json!({"whenDeleted": "Retain", "whenScaled": "Delete"});
    assert_eq!(declaration.node_sets[0].claim_retention, Some(retention));
}

#[test] // proves DECLARE-16
fn half_declarations_are_refused_with_field_and_remedy() {
    let table = [
        ("engine/version", json!(null), "spec.engine: ", "version (such as 2.19.3)"),
        ("engine/version", json!("2.x"), "spec.engine: ", "version (such as 2.19.3)"),
        ("engine/distribution", json!(null), "spec.engine: ", "elasticsearch or opensearch"),
        (
            "pods",
            json!({"selector": {"matchLabels": {"app": "logs"}}}),
            "spec.pods: is for nodes that are made elsewhere",
            "take it or nodeSets out",
        ),
        (
            "nodeSets",
            json!([{"name": "all", "count": 3}]),
            "spec.nodeSets[all].volumeClaimTemplates: there is none named data",
            "podTemplate.spec.volumes",
        ),
    ];
    for (pointer, value, says, remedy) in table {
        let mut object = declared();
        set(&mut object, pointer, value);
        let problems = read(object).check().unwrap_err();
        let [problem] = &problems[..] else { panic!("{pointer}: {problems:?}") };
        let message = problem.to_string();
        assert!(message.starts_with(says) && message.contains(remedy), "{pointer}: {message}");
    }
}

#[test]
fn what_was_not_written_is_not_written_back() {
    let written = serde_json::to_value(read(declared())).unwrap();
    assert!(written["spec"].get("pods").is_none() && written["spec"].get("manager").is_none());
    let again: SearchCluster = serde_json::from_value(written).unwrap();
    assert_eq!(again, read(declared()));
}
