//! What becomes of a pod beside its template.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::stateful_set::Set;
use stayput_pod_update::{Difference, Update, UpdateStep};
use stayput_restart::NodeReport;

use crate::diff::{Wanted, leaves, with_content};

fn cluster(sets: &Value) -> SearchCluster {
    serde_json::from_value(json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "search"},
        "spec": {"engine": {"scheme": "http"}, "nodeSets": sets},
    }))
    .expect("a SearchCluster")
}

/// Of three pods; `owner` is the API of what it belongs to.
fn set(owner: &str, node_set: &str) -> Set {
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": {
            "name": format!("logs-{node_set}"), "labels": {"stayput.dev/node-set": node_set},
            "ownerReferences": [{
                "apiVersion": owner, "kind": "SearchCluster", "name": "logs", "uid": "u",
                "controller": true,
            }],
        },
        "spec": {"replicas": 3, "serviceName": "logs", "selector": {}, "template": {}},
    }))
    .expect("a StatefulSet");
    Set::of(&set)
}

/// What `leaves` shows of the pod.
fn shown(cluster: &SearchCluster, set: &Set, pod: &str) -> String {
    match leaves(cluster, set, pod) {
        None => "stays".to_owned(),
        Some(Wanted::Removed(why)) => why,
        Some(Wanted::Unknown(reason)) => reason.to_string(),
        Some(Wanted::Update(update)) => {
            let [Difference { field, to, .. }] = &update.because[..] else {
                panic!("{update:?}");
            };
            format!("{} by {field}, {to:?}", update.step.name())
        }
    }
}

/// The StatefulSet of a declared cluster has as many replicas as before until its node has left.
#[test] // proves UPDATE-31
fn the_declaration_says_which_nodes_leave() {
    let declared = |count: u32| json!([{"name": "data", "count": count}]);
    let ours = "stayput.dev/v1alpha1";
    let (data, gone) = (set(ours, "data"), set(ours, "gone"));
    let fewer = cluster(&declared(2));
    for (cluster, set, pod, expected) in [
        (&fewer, &data, "logs-data-1", "stays"),
        (&fewer, &data, "logs-data-2", "move by spec.nodeSets[data].count, Some(\"2\")"),
        (&fewer, &gone, "logs-gone-0", "move by spec.nodeSets[gone], None"),
        // More are declared than the StatefulSet has yet.
        (&cluster(&declared(4)), &data, "logs-data-2", "stays"),
    ] {
        assert_eq!(shown(cluster, set, pod), expected, "{pod}");
    }
    let mut deleted = fewer.clone();
    deleted.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-11-21T03:08:00Z")).expect("a time"));
    assert_eq!(shown(&deleted, &data, "logs-data-2"), "stays");

    let attached = cluster(&json!([]));
    assert_eq!(shown(&attached, &data, "logs-data-2"), "stays");
    let why = shown(&attached, &data, "logs-data-3");
    assert!(why.contains("StatefulSet logs-data wants fewer pods"), "{why}");
    assert!(why.contains("nobody moves its data"), "{why}");
    // A set of somebody else is none of the declaration.
    assert_eq!(shown(&fewer, &set("apps/v1", "data"), "logs-data-2"), "stays");
}

#[test] // proves UPDATE-31
fn what_secrets_and_config_maps_contain_is_known_from_the_status() {
    use UpdateStep::Container;
    use UpdateStep::Move;
    use UpdateStep::None;
    use UpdateStep::Relabel;
    use UpdateStep::Replace;
    use UpdateStep::Restart;
    let label = "metadata.labels.team: a is new";
    let variable = "ConfigMap logs, key A, in env";
    let image = "spec.containers[search].image: a -> b";
    for (own, reported, because, step, fields) in [
        (None, Restart, vec![], Restart, vec!["the config"]),
        (Relabel, Restart, vec!["the config", label], Restart, vec!["the config", "own"]),
        (None, Container, vec![variable], Container, vec![variable]),
        // The template asks for that much, or for more.
        (Container, Restart, vec!["the config", label], Container, vec!["own"]),
        (Replace, Container, vec![variable], Replace, vec!["own"]),
        // The status is of another template.
        (None, Container, vec![image], None, vec![]),
        // No container, and no process, is another one for these.
        (None, Relabel, vec![], None, vec![]),
        (None, Move, vec!["spec.nodeSets"], None, vec![]),
    ] {
        let difference =
            |step| Difference { field: "own".into(), from: Option::None, to: Option::None, step };
        let own = if own == None { vec![] } else { vec![difference(own)] };
        let before = Update { step: own.first().map_or(None, |first| first.step), because: own };
        let report = NodeReport {
            step: Some(reported),
            because: because.iter().map(|field| (*field).to_owned()).collect(),
            ..NodeReport::default()
        };
        let update = with_content(before, Some(&report));
        let named: Vec<&str> = update.because.iter().map(|each| each.field.as_str()).collect();
        assert_eq!((update.step, named), (step, fields), "{reported:?} {because:?}");
    }
}
