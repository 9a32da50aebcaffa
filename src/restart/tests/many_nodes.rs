//! Restarts of as many nodes as the ledger has room for, and of more.

use super::scenario::moment;
use crate::{Action, Ledger, MAX_MEMBERS, Plan, Request, Snapshot, annotation, plan};

/// A cluster of so many nodes, all of which a person asks to be restarted.
fn cluster_of(nodes: usize) -> (Snapshot, crate::Policy) {
    let (mut snapshot, policy) = moment(&["one node"]);
    for number in 1..nodes {
        let mut pod = snapshot.pods[0].clone();
        pod.uid = format!("uid-{number}");
        pod.name = format!("logs-{number}");
        pod.node = pod.name.clone();
        pod.manager.as_mut().unwrap().pod_uid = Some(pod.uid.clone());
        snapshot.pods.push(pod);
    }
    let request = Request { id: "r1".into(), ..Request::default() };
    let request = serde_json::to_string(&request).unwrap();
    snapshot.cluster.annotations.insert(annotation::REQUEST.into(), request);
    (snapshot, policy)
}

fn written(made: &Plan) -> &Ledger {
    let Some(Action::WriteLedger(ledger)) = made.actions.first() else { panic!("{made:?}") };
    ledger
}

#[test] // proves RESTART-22
fn a_restart_of_too_many_nodes_is_refused_before_anything_is_stopped() {
    let (mut snapshot, policy) = cluster_of(MAX_MEMBERS + 1);
    let made = plan(&snapshot, &policy);
    let ledger = written(&made);
    assert_eq!(ledger.restart, None);
    let reason = &ledger.history.last().expect("it is in the history").reason;
    assert!(
        reason.starts_with("2001 nodes are selected, and one restart has at most 2000"),
        "{reason}"
    );

    snapshot.pods.pop();
    let made = plan(&snapshot, &policy);
    let restart = written(&made).restart.as_ref().expect("it begins");
    assert_eq!(restart.members.len(), MAX_MEMBERS);
}
