use serde_json::{Value, json};

use crate::pods::start::*;

fn unstarted(status: Value) -> Option<Unstarted> {
    let pod = json!({
        "spec": {"containers": [{"name": "search"}, {"name": "exporter"}]},
        "status": status,
    });
    Unstarted::of(&serde_json::from_value(pod).expect("a pod"))
}

fn container(name: &str, state: Value, last: Value, restarts: u32) -> Value {
    json!({
        "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": restarts,
        "state": state, "lastState": last,
    })
}

fn waiting(name: &str, reason: &str, message: &str) -> Value {
    container(name, json!({"waiting": {"reason": reason, "message": message}}), json!({}), 0)
}

/// Why the engine's container has never run, in one line.
fn why(status: Value) -> Option<String> {
    Some(unstarted(status)?.of_container("search")?.to_string())
}

#[test] // proves UPDATE-7
fn each_hindrance_is_told_in_the_words_of_kubernetes() {
    let initializing = waiting("search", "PodInitializing", "");
    let crashing = container(
        "stayput",
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}),
        json!({"terminated": {"exitCode": 64}}),
        3,
    );
    let failed = container(
        "stayput",
        json!({"terminated": {"exitCode": 64, "reason": "Error"}}),
        json!({}),
        0,
    );
    for (status, expected) in [
        (
            json!({"conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/1 nodes are available"}]}),
            "Unschedulable: 0/1 nodes are available",
        ),
        (
            json!({"containerStatuses": [waiting("search", "ImagePullBackOff", "not found")]}),
            "container search: ImagePullBackOff: not found",
        ),
        (
            json!({"containerStatuses": [waiting("search", "CreateContainerConfigError", "secret \"a\" not found")]}),
            "container search: CreateContainerConfigError: secret \"a\" not found",
        ),
        (
            json!({"initContainerStatuses": [crashing], "containerStatuses": [initializing.clone()]}),
            "container stayput: CrashLoopBackOff: back-off 10s",
        ),
        (
            json!({"initContainerStatuses": [failed], "containerStatuses": [initializing.clone()]}),
            "container stayput: Error: ended with code 64",
        ),
        (json!({"containerStatuses": [initializing]}), "ContainerCreating"),
        (json!({}), "ContainerCreating"),
    ] {
        let mut status = status;
        status["phase"] = json!("Pending");
        assert_eq!(why(status.clone()).as_deref(), Some(expected), "{status:#}");
        status["phase"] = json!("Running");
        assert_eq!(why(status), None);
    }
}

#[test] // proves UPDATE-7
fn a_container_that_has_run_is_not_one_that_never_started() {
    let exporter = waiting("exporter", "ImagePullBackOff", "not found");
    for search in [
        container("search", json!({"running": {}}), json!({}), 0),
        container("search", json!({"terminated": {"exitCode": 1}}), json!({}), 0),
        container(
            "search",
            json!({"waiting": {"reason": "ImagePullBackOff"}}),
            json!({"terminated": {"exitCode": 137}}),
            0,
        ),
        container("search", json!({"waiting": {"reason": "ImagePullBackOff"}}), json!({}), 1),
    ] {
        let status = json!({"phase": "Pending", "containerStatuses": [search, exporter]});
        let unstarted = unstarted(status).expect("the other one has not run");
        assert_eq!(unstarted.of_container("search"), None);
        assert!(unstarted.of_container("exporter").is_some());
    }
}
