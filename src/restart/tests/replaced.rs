//! A member whose pod was replaced in the middle of its turn, and whose new pod has joined.

use super::scenario::moment;
use crate::{Action, Code, plan};

/// A manager that does not know its pod cannot say for which pod it answers, so nobody knows on which
/// config the new engine runs.
#[test] // proves RESTART-131
fn it_is_not_done_while_its_manager_does_not_know_its_pod() {
    let (mut snapshot, policy) = moment(&[
        "three nodes",
        "change config logs-* v2",
        "request rolling r1 nodes logs-1",
        "run until logs-1 is stopped",
        "controller off",
        "replace pod logs-1 on v1",
        "run 30s",
    ]);
    let manager = snapshot.pods[1].manager.as_mut().expect("it answers");
    manager.pod_uid = None;
    let made = plan(&snapshot, &policy);
    let is_wrong_pod = |code| code == Code::WrongPod;
    assert!(made.waiting.iter().any(|one| is_wrong_pod(one.code)), "{:?}", made.waiting);
    assert!(!made.actions.iter().any(|action| matches!(action, Action::WriteLedger(_))));

    let member = snapshot.ledger.members().next().expect("it is under way");
    snapshot.now = member.since.plus(2 * policy.phase_timeout);
    let made = plan(&snapshot, &policy);
    let ending = made.actions.iter().find_map(|action| match action {
        Action::WriteLedger(ledger) => ledger.restart.as_ref()?.ending.clone(),
        _ => None,
    });
    let ending = ending.expect("it ends after the time of its turn");
    assert!(ending.reason.contains("STAYPUT_POD_UID"), "{}", ending.reason);
}
