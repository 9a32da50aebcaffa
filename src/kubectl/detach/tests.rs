//! When a cluster may be detached, what is owed otherwise, and what is taken off.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;

use crate::detach::clean::{self, removal};
use crate::detach::refusals::{Refusal, commands, may};
use crate::view::ClusterView;

/// Three nodes, and this SearchCluster.
fn cluster(change: impl FnOnce(&mut Value)) -> (SearchCluster, ClusterView) {
    let mut cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "search", "finalizers": ["x/y", "stayput.dev/debts"]},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}}, "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
        },
        "status": {"phase": "Idle"},
    });
    change(&mut cluster);
    let cluster: SearchCluster = serde_json::from_value(cluster).unwrap();
    let pods: Vec<Pod> = (0..3)
        .map(|number| {
            let metadata =
                json!({"name": format!("logs-{number}"), "uid": format!("uid-{number}")});
            // logs-2 as of `inject`, beside another container; the others with an image that carries the manager.
            let containers = match number {
                2 => json!([
                    {"name": "sidecar", "command": ["/bin/log"]},
                    {"name": "search", "ports": [{"containerPort": 9199}],
                     "command": ["/stayput/stayput", "run", "--", "x"]},
                ]),
                _ => json!([{"name": "search"}]),
            };
            let spec = json!({"containers": containers});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        })
        .collect();
    let view = ClusterView::from_objects(&cluster, pods.iter());
    (cluster, view)
}

fn restart(it: &mut Value) {
    it["status"]["ledger"]["restart"] = json!({
        "request": {"id": "a", "strategy": "rolling", "target": {}},
        "started": "2026-11-21T03:08:00Z",
        "members": [{
            "podUid": "uid-2", "pod": "logs-2", "node": "logs-2", "step": "restarting",
            "since": "2026-11-21T03:09:20Z",
        }],
    });
}

fn owes(it: &mut Value) {
    it["status"]["ledger"]["debts"] = json!({
        "start": [{"podUid": "uid-1", "node": "logs-1", "sequence": 2, "config": "mounted"}],
        "allocation": {"restart": "a", "before": {"transient": "all"}, "holders": []},
        "records": [{"nodeId": "Ck7fW3yqTz2mPpSx1LhQ9g", "node": "logs-1", "podUid": "uid-1", "restart": "a"}],
        "exclusion": {"node": "logs-1", "podUid": "uid-1", "restart": "a"},
    });
}

#[test] // proves DOCTOR-11
fn it_begins_only_where_nothing_is_left_undone() {
    let asked = |change: fn(&mut Value), cancel: bool| {
        let (cluster, view) = cluster(change);
        may(&cluster, &view, None, cancel).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(asked(|_| {}, false), Ok(()));
    assert_eq!(asked(owes, false), Ok(()), "the reconciler undoes that");
    let refused = asked(restart, false).unwrap_err();
    assert!(
        refused.contains("restart a has not ended") && refused.contains("--cancel"),
        "{refused}"
    );
    assert_eq!(asked(restart, true), Ok(()));
    let requested: fn(&mut Value) = |it| {
        let request = json!({"id": "b", "strategy": "rolling", "target": {}}).to_string();
        it["metadata"]["annotations"] = json!({"stayput.dev/restart-request": request});
    };
    assert!(asked(requested, false).unwrap_err().contains("restart b has not ended"));
    let refused = asked(|it| it["spec"]["stopped"] = json!(["logs-1"]), true).unwrap_err();
    assert!(
        refused.contains("`kubectl stayput -n search start logs-1 --cluster logs` first"),
        "{refused}"
    );
    let refused = asked(
        |it| {
            it["spec"]["nodeSets"] = json!([{"name": "hot", "count": 3, "roles": ["data"]}]);
            it["spec"]["pods"] = json!({"selector": {}});
        },
        true,
    );
    let refused = refused.unwrap_err();
    assert!(refused.contains("StatefulSets logs-hot, which are deleted with it"), "{refused}");
    assert!(refused.contains("--cascade=orphan"), "{refused}");
}

#[test] // proves DOCTOR-10, DOCTOR-11
fn without_a_reconciler_it_says_what_a_person_must_undo() {
    let gone = Some("why");
    let (attached, view) = cluster(|it| {
        owes(it);
        restart(it);
    });
    let Err(Refusal::NoReconciler { why, commands, remove_finalizer }) =
        may(&attached, &view, gone, false)
    else {
        panic!("it is refused");
    };
    assert_eq!(why, "why");
    let expected = [
        "kubectl -n search exec logs-1 -c search -- stayput start",
        "kubectl -n search exec logs-2 -c search -- /stayput/stayput start",
        "curl $ACCESS -X PUT \"$ENGINE/_cluster/settings\" -H 'Content-Type: application/json' -d \
         '{\"persistent\":{\"cluster.metadata.stayput\":null,\"cluster.routing.allocation.enable\":null},\
         \"transient\":{\"cluster.routing.allocation.enable\":\"all\"}}'",
        "curl $ACCESS -X DELETE \"$ENGINE/_nodes/Ck7fW3yqTz2mPpSx1LhQ9g/shutdown\"",
        "curl $ACCESS -X DELETE \"$ENGINE/_cluster/voting_config_exclusions?wait_for_removal=false\"",
    ];
    assert_eq!(commands, expected);
    let patch = remove_finalizer.split_once(" -p ").unwrap().1.trim_matches('\'');
    let mut finalizers = json!({"metadata": {"finalizers": ["x/y", "stayput.dev/debts"]}});
    let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
    json_patch::patch(&mut finalizers, &patch).unwrap();
    assert_eq!(finalizers["metadata"]["finalizers"], json!(["x/y"]));
    let mut others = json!({"metadata": {"finalizers": ["x/y", "x/z"]}});
    assert!(json_patch::patch(&mut others, &patch).is_err(), "another's stays");
    // A person has taken the finalizer off.
    let (attached, view) = cluster(|it| it["metadata"]["finalizers"] = json!(["x/y"]));
    assert_eq!(may(&attached, &view, gone, false), Ok(()));
}

#[test] // proves DOCTOR-8
fn what_will_be_done_is_shown_before() {
    let shown = |change: fn(&mut Value)| {
        let (attached, view) = cluster(change);
        let pod = |name: &str, annotations: Value| -> Pod {
            let metadata = json!({"name": name, "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let marked = pod("logs-0", json!({"stayput.dev/last-restart": "{}"}));
        clean::steps(&view, &attached, &[marked, pod("logs-1", json!({}))], true)
    };
    let deleted = [
        "SearchCluster search/logs is deleted once the reconciler has undone its changes",
        "annotations of stayput are taken off the pods logs-0",
    ];
    assert_eq!(shown(|_| {}), deleted);
    let all = shown(|it| {
        restart(it);
        it["spec"]["engine"]["credentialsSecret"] = json!("engine-user");
    });
    let [first, second] = deleted;
    let expected = [
        "restart a is cancelled, and its end is waited for",
        first,
        second,
        "logs is taken out of the annotation stayput.dev/allow of the Secrets engine-user",
    ];
    assert_eq!(all, expected);
}

#[test]
fn where_nothing_is_owed_that_is_said() {
    let (_, view) = cluster(|_| {});
    assert_eq!(commands(&view), ["(the ledger has no debts)"]);
}

#[test] // proves DOCTOR-11
fn a_label_that_is_ahead_is_set_back_by_hand_without_a_reconciler() {
    let (_, mut view) = cluster(|_| {});
    view.pods[1].actual_revision = Some("logs-1".to_owned());
    let patch = r#"'{"metadata":{"annotations":{"stayput.dev/actual-revision":null},"labels":{"controller-revision-hash":"logs-1"}}}'"#;
    let expected = format!("kubectl -n search patch pod logs-1 --type merge -p {patch}");
    assert_eq!(commands(&view), [expected]);
}

#[test]
fn only_ours_is_taken_off() {
    let annotations = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    // The manager stays, and goes on to give its engine these variables.
    let variables = ("stayput.dev/environment", r#"{"TEAM": "a"}"#);
    let pod = annotations(&[("stayput.dev/last-restart", "{}"), ("team", "a"), variables]);
    let expected = json!({"metadata": {"annotations": {"stayput.dev/last-restart": null}}});
    assert_eq!(removal(&pod), Some(expected));
    assert_eq!(removal(&annotations(&[("team", "a")])), None);
    // Without the annotation the label would say that the pod is updated.
    let ahead = annotations(&[("stayput.dev/actual-revision", "logs-1")]);
    let back = json!({"metadata": {
        "annotations": {"stayput.dev/actual-revision": null},
        "labels": {"controller-revision-hash": "logs-1"},
    }});
    assert_eq!(removal(&ahead), Some(back));
}
