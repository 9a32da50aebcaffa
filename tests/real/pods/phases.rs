//! How far each node is in a restart.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchClusterStatus;
use stayput_restart::MemberStep;

use super::fixture::Fixture;

/// Where the reconciler shows how far a node is.
const PHASE: &str = "elasticsearch.k8s.elastic.co/restart-phase";

/// What each pod shows of its step. A short stop is not shown on the pod: there it is that of a node
/// that holds a slot and is not started yet.
pub(super) fn shown(fixture: &Fixture) -> Vec<Value> {
    let under_way = under_way(fixture);
    let pods = fixture.pods();
    let pods = pods.iter().map(|pod| {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let shown = pod["metadata"]["annotations"][PHASE].as_str();
        let is_stopped = under_way.contains(name) && shown != Some("start");
        json!({
            "name": name,
            "phase": if is_stopped { Some("stop") } else { shown },
            "revision": pod["metadata"]["labels"]["controller-revision-hash"],
            "image": pod["spec"]["containers"][0]["image"],
            "container": pod["status"]["containerStatuses"][0]["containerID"],
        })
    });
    pods.collect()
}

/// Names of the nodes that hold a slot.
fn under_way(fixture: &Fixture) -> BTreeSet<String> {
    let status = fixture.logs()["status"].take();
    let status: SearchClusterStatus = serde_json::from_value(status).expect("a status");
    let members = status.ledger.restart.into_iter().flat_map(|restart| restart.members);
    members.filter(|one| one.step == MemberStep::Restarting).map(|one| one.node).collect()
}
