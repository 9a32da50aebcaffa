//! What the objects of living pods say about updates.

use serde_json::json;

use super::*;

fn live(spec: Value, status: Value) -> LivePod {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "logs-0"}, "spec": spec, "status": status,
    }))
    .expect("a pod");
    LiveFacts::of(&pod).for_decisions("logs-1", "search")
}

fn container(memory: &str) -> Value {
    json!({"name": "search", "image": "e:1", "resources": {"limits": {"memory": memory}}})
}

fn reported(memory: &str, state: Value) -> Value {
    json!({
        "name": "search", "image": "e:1", "imageID": "", "ready": true, "restartCount": 0,
        "containerID": "containerd://a", "state": state,
        "resources": {"limits": {"memory": memory}},
    })
}

#[test] // proves UPDATE-4
fn a_size_is_in_effect_when_the_kubelet_says_so_and_nothing_is_under_way() {
    let spec = json!({"containers": [container("2Gi")]});
    let running = json!({"running": {}});
    let with = |memory: &str, conditions: Value| {
        let status = json!({
            "containerStatuses": [reported(memory, running.clone())], "conditions": conditions,
        });
        live(spec.clone(), status)
    };
    let sized = |pod: &LivePod| pod.resized.contains("search");
    assert!(sized(&with("2048Mi", json!([]))));
    assert!(!sized(&with("1Gi", json!([]))), "not yet");
    let condition = |kind: &str, reason: &str| json!([{"type": kind, "status": "True", "reason": reason, "message": "no room"}]);
    let under_way = with("2Gi", condition("PodResizeInProgress", ""));
    assert!(!sized(&under_way));
    assert_eq!(under_way.resize, Some(ResizeState::InProgress("no room".into())));
    let deferred = with("1Gi", condition("PodResizePending", "Deferred"));
    assert_eq!(deferred.resize, Some(ResizeState::Pending("Deferred: no room".into())));
    let never = with("1Gi", condition("PodResizePending", "Infeasible"));
    assert_eq!(never.resize, Some(ResizeState::Pending("Infeasible: no room".into())));
    assert_eq!(never.resources["search"], r#"{"limits":{"memory":"2Gi"}}"#);
}

#[test]
fn what_the_kubelet_says_of_an_earlier_size_does_not_count() {
    let resize = |seen: Option<i64>| {
        let condition = json!({
            "type": "PodResizePending", "status": "True", "reason": "Infeasible",
            "message": "no room", "observedGeneration": seen,
        });
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "logs-0", "generation": 3},
            "spec": {"containers": [container("2Gi")]},
            "status": {"conditions": [condition]},
        }))
        .expect("a pod");
        LiveFacts::of(&pod).for_decisions("logs-1", "search").resize
    };
    assert_eq!(resize(Some(3)), Some(ResizeState::Infeasible("no room".into())));
    assert_eq!(resize(Some(2)), None);
    let may_pass = Some(ResizeState::Pending("Infeasible: no room".into()));
    assert_eq!(resize(None), may_pass, "an older kubelet does not tell");
}

#[test] // proves RESTART-72, UPDATE-4
fn the_managers_container_is_one_that_runs_or_says_what_it_waits_for() {
    let spec = json!({"containers": [container("1Gi"), {"name": "side", "image": "s:1"}]});
    let pod =
        live(spec.clone(), json!({"containerStatuses": [reported("1Gi", json!({"running": {}}))]}));
    assert_eq!(pod.container_id.as_deref(), Some("containerd://a"));
    assert_eq!(pod.waiting, None);
    assert_eq!(pod.images["side"], "s:1");
    assert_eq!(pod.resources["side"], "{}");
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let mut status = reported("1Gi", waiting);
    status["lastState"] = json!({"terminated": {"exitCode": 1, "containerID": "containerd://a"}});
    let pod = live(spec, json!({"containerStatuses": [status]}));
    assert_eq!(pod.container_id, None, "it has ended");
    assert_eq!(pod.ended_id.as_deref(), Some("containerd://a"), "as it is the last that did");
    let waiting = pod.waiting.expect("it waits");
    assert_eq!(
        (waiting.reason.as_str(), waiting.message.as_str()),
        ("ImagePullBackOff", "not found")
    );
}

#[test] // proves UPDATE-4
fn claims_and_the_word_of_the_scheduler_are_known() {
    let pod = live(
        json!({
            "containers": [container("1Gi")],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-logs-0"}},
                {"name": "tmp", "emptyDir": {}},
            ],
        }),
        json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available",
        }]}),
    );
    assert_eq!(pod.claims, BTreeSet::from(["data-logs-0".to_owned()]));
    assert_eq!(pod.unschedulable.as_deref(), Some("0/3 nodes are available"));
}

#[test]
fn a_container_beside_the_managers_says_whether_it_runs_and_is_ready() {
    let proxy = json!({"name": "proxy", "image": "p:1", "restartPolicy": "Always"});
    let side = json!({"name": "side", "image": "s:1"});
    let spec = json!({"containers": [container("1Gi"), side], "initContainers": [proxy]});
    let status = |name: &str, ready: bool, state: Value, last: Value| {
        json!({
            "name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 1,
            "containerID": "containerd://b", "state": state, "lastState": last,
        })
    };
    let ended = json!({"terminated": {"exitCode": 0, "containerID": "containerd://a"}});
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let pod = live(
        spec,
        json!({
            "containerStatuses": [status("side", false, waits, ended.clone())],
            "initContainerStatuses": [status("proxy", true, json!({"running": {}}), ended)],
        }),
    );
    assert_eq!(pod.others.keys().collect::<Vec<_>>(), ["proxy", "side"]);
    let id = |name: &str| Some(format!("containerd://{name}"));
    let (proxy, side) = (&pod.others["proxy"], &pod.others["side"]);
    assert_eq!((&proxy.id, &proxy.ended_id, proxy.ready), (&id("b"), &id("a"), true));
    assert_eq!((&side.id, &side.ended_id, side.ready), (&None, &id("a"), false));
    let waiting = side.waiting.as_ref().map(|waiting| waiting.reason.as_str());
    assert_eq!(waiting, Some("ImagePullBackOff"));
}

/// The kubelet does not make it anew for another image.
#[test] // proves UPDATE-56
fn what_has_run_and_ended_is_not_waited_for() {
    let once = json!({"name": "stayput-warm", "image": "e:1"});
    let proxy = json!({"name": "proxy", "image": "p:1", "restartPolicy": "Always"});
    let pod =
        live(json!({"containers": [container("1Gi")], "initContainers": [once, proxy]}), json!({}));
    assert_eq!(pod.others.keys().collect::<Vec<_>>(), ["proxy"]);
    assert!(pod.images.contains_key("stayput-warm"), "its image can be changed");
}
