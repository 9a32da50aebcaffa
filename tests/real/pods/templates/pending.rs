//! A pod that no Kubernetes node takes.

use std::time::Instant;

use serde_json::json;

use super::stage::Stage;
use crate::pods::seen::seen;

#[test]
fn a_pod_that_no_kubernetes_node_takes_ends_the_restart() {
    let test = "pods::templates::pending::a_pod_that_no_kubernetes_node_takes_ends_the_restart";
    let Some(mut stage) = Stage::set_up(test) else { return };
    // There are three phases until it is given up: an autoscaler may add a node.
    stage.configure(&json!({ "restart": { "phaseTimeout": "15s" } }));
    let began = Instant::now();
    stage.template["spec"]["nodeSelector"] = json!({ "nowhere": "yes" });
    stage.edit();
    let entry = stage.until_ended("aborted");
    println!(
        "a pod that is not scheduled is given up: {} ms: {entry}",
        began.elapsed().as_millis()
    );
    let reason = entry["reason"].as_str().expect("a reason");
    assert!(reason.contains("logs-2: no Kubernetes node takes the new pod: 0/1 nodes"), "{reason}");
    assert!(reason.contains("node affinity/selector"), "{reason}");
    let left = seen(&stage.fixture);
    assert_eq!(left, stage.pods[..2], "the others are not stopped");

    // A node takes it, and a person asks again.
    stage.fixture.admin().run(&["label", "node", "node", "nowhere=yes"]);
    let (before, after) = stage.until_serving();
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after[2].claim, before[2].claim);
    assert_ne!(after[2].uid, before[2].uid);
    stage.fixture.people.run("kubectl stayput -n search restart logs --watch");
    let (before, after) = stage.until_updated();
    for (was, is) in before.iter().zip(&after).take(2) {
        assert_ne!(is.uid, was.uid, "{}", is.name);
        assert_eq!(is.claim, was.claim, "{}", is.name);
    }
}
