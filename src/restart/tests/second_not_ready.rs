//! The OpenSearch operator takes two pods that are not ready for a failure of the cluster.

use super::scenario::moment;
use crate::{Action, Code, Plan, Policy, Restart, Snapshot, annotation, plan};

const ANOTHER: &str = "logs-0 is not ready, and the OpenSearch operator makes the StatefulSet of OpenSearchCluster logs \
                       again when two pods are not";

fn cluster_of(operator: &'static str, script: &[&'static str]) -> (Snapshot, Policy) {
    let first = ["three nodes", operator];
    moment(&[&first, script].concat())
}

/// The nodes with a slot in the ledger that the plan writes.
fn slots(plan: &Plan) -> Vec<&str> {
    let ledgers = plan.actions.iter().filter_map(|action| match action {
        Action::WriteLedger(ledger) => Some(ledger),
        _ => None,
    });
    ledgers.flat_map(|ledger| ledger.under_way()).map(|member| member.node.as_str()).collect()
}

fn waits<'p>(plan: &'p Plan, node: &str) -> Option<(Code, &'p str)> {
    let waiting = plan.waiting.iter().find(|waiting| waiting.node.as_deref() == Some(node))?;
    Some((waiting.code, &*waiting.message))
}

#[test] // proves UPDATE-99
fn no_node_is_stopped_beside_a_pod_of_it_that_is_not_ready() {
    for (operator, confirmed, is_stopped) in [
        ("opensearch makes the pods", None, false),
        ("opensearch makes the pods", Some("true"), false),
        ("opensearch makes the pods", Some("false"), true),
        ("eck makes the pods", None, true),
    ] {
        let (mut snapshot, policy) = cluster_of(operator, &["request rolling r1", "run 200ms"]);
        assert_eq!(slots(&plan(&snapshot, &policy)), ["logs-2"], "all are ready");
        let annotations = &mut snapshot.cluster.annotations;
        let confirmed = confirmed.map(|it| (annotation::PARALLEL_RECOVERY.to_owned(), it.into()));
        annotations.extend(confirmed);
        snapshot.pods[0].ready = false;
        let plan = plan(&snapshot, &policy);
        if is_stopped {
            assert_eq!(slots(&plan).len(), 1, "{operator}: {plan:#?}");
        } else {
            assert_eq!(waits(&plan, "logs-2"), Some((Code::OperatorReplaces, ANOTHER)));
            assert_eq!(slots(&plan), ["logs-0"], "it is down for the operator already");
        }
    }
}

#[test] // proves UPDATE-99
fn a_node_of_it_keeps_its_slot_until_its_pod_is_ready() {
    for (operator, keeps) in [("opensearch makes the pods", true), ("eck makes the pods", false)] {
        let script = [
            "request rolling r1",
            "run until logs-2 is stopped",
            "run until logs-2 is running",
            "run 1s",
        ];
        let (mut snapshot, policy) = cluster_of(operator, &script);
        snapshot.pods[2].ready = false;
        let plan = plan(&snapshot, &policy);
        assert_eq!(
            waits(&plan, "logs-2").is_some_and(|(code, _)| code == Code::NotReady),
            keeps,
            "{plan:#?}"
        );
    }
}

#[test] // proves UPDATE-99
fn a_pod_of_it_that_never_gets_ready_ends_the_restart() {
    let script = [
        "request rolling r1",
        "run until logs-2 is stopped",
        "run until logs-2 is running",
        "run 1s",
    ];
    let (mut snapshot, policy) = cluster_of("opensearch makes the pods", &script);
    snapshot.pods[2].ready = false;
    snapshot.now = snapshot.now.plus(2 * policy.phase_timeout);
    let plan = plan(&snapshot, &policy);
    let restart = restart(&plan).unwrap_or_else(|| panic!("it goes on: {plan:#?}"));
    let reason = "logs-2: not back in time: its engine serves, and its pod is not ready: the OpenSearch operator makes \
                  the StatefulSet again when two are not";
    assert_eq!(restart.ending.as_ref().map(|ending| &*ending.reason), Some(reason));
    let back = restart.members.iter().find_map(|member| member.compensation.as_ref());
    assert_eq!(back.map(|back| back.stop_sequence), Some(None), "its engine goes on: {back:?}");
}

/// The restart in the ledger that the plan writes.
fn restart(plan: &Plan) -> Option<&Restart> {
    plan.actions.iter().find_map(|action| match action {
        Action::WriteLedger(ledger) => ledger.restart.as_ref(),
        _ => None,
    })
}
