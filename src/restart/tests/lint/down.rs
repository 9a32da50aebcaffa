//! A node that is down although nobody asked for that is in the table of nodes, in a condition and in the number
//! that the metric shows; and no other node is in the table as down.

use super::facts::Input;
use crate::{Member, Pod, Report, Snapshot};
use stayput_api::State;

/// The table has no more nodes.
const MOST_NODES: usize = 100;

pub(super) fn check(facts: &Input, report: &Report, wrong: &mut Vec<String>) {
    let shown = report.nodes.iter().filter(|row| row.down.is_some());
    for row in shown.filter(|row| !may_be_shown(facts, &row.name)) {
        wrong.push(format!("{} is not down, and the table of nodes says so", row.name));
    }
    let pods = facts.snapshot.pods.iter();
    let down: Vec<&Pod> =
        pods.filter(|pod| is_down(facts, pod) && !is_expected(facts, pod)).collect();
    let Some(first) = down.first() else { return };
    if report.conditions.iter().any(|one| one.reason == "NothingOwed") {
        wrong.push(format!("NothingOwed is said while {} is down", first.node));
    }
    if !report.conditions.iter().any(|one| one.kind == "Degraded" && one.status == "True") {
        wrong.push(format!("{} is down, and no condition says so", first.node));
    }
    if usize::try_from(report.counts.down).unwrap() < down.len() {
        let (counted, all) = (report.counts.down, down.len());
        wrong.push(format!("{counted} nodes are counted as down, and {all} are"));
    }
    let is_shown = |pod: &Pod| {
        let mut rows = report.nodes.iter();
        rows.any(|row| row.name == pod.node && row.down.is_some() && row.message.is_some())
    };
    for pod in down.into_iter().filter(|pod| report.nodes.len() < MOST_NODES && !is_shown(pod)) {
        wrong.push(format!("{} is down, and the table of nodes does not say so", pod.node));
    }
}

/// Whether its engine does not run, or runs outside of its cluster; of a silent manager, whether nothing shows that
/// it serves.
fn is_down(facts: &Input, pod: &Pod) -> bool {
    let is_outside = is_of_this_cluster(facts) && facts.node(&pod.node).is_none();
    match facts.manager(&pod.uid).map(|manager| manager.state) {
        Some(State::Stopped | State::Failed | State::Stuck | State::Backoff) => true,
        Some(State::Starting | State::Running | State::Stopping | State::Killing) => is_outside,
        None => is_outside || pod.crash_looping || !pod.ready,
    }
}

/// Whether the engine that answers is that of our pods.
fn is_of_this_cluster(facts: &Input) -> bool {
    let snapshot = facts.snapshot;
    let known = snapshot.ledger.cluster_uuid.as_ref();
    facts.engine().is_some_and(|engine| {
        known.is_none_or(|uuid| *uuid == engine.cluster_uuid)
            && snapshot.pods.iter().any(|pod| facts.node(&pod.node).is_some())
    })
}

/// Whether a pod of this node is down, or missing. One in the place of a member's pod may be shown or not.
fn may_be_shown(facts: &Input, node: &str) -> bool {
    let Snapshot { pods, missing, .. } = facts.snapshot;
    let is_so = |pod: &Pod| {
        let is_in_hand = is_in_hand(facts, |member| member.pod_uid == pod.uid);
        pod.node == node && is_down(facts, pod) && !is_wanted(facts, pod) && !is_in_hand
    };
    pods.iter().any(is_so) || missing.iter().any(|missing| missing.name == node)
}

fn is_expected(facts: &Input, pod: &Pod) -> bool {
    // Also in the place of a member's pod.
    is_wanted(facts, pod) || is_in_hand(facts, |member| member.node == pod.node)
}

/// Whether somebody wants it to be down.
fn is_wanted(facts: &Input, pod: &Pod) -> bool {
    let uid = pod.uid.as_str();
    pod.terminating || facts.is_to_be_stopped(uid) || facts.kept_stopped(uid).is_some()
}

/// Whether a restart has such a member under way. After a phase the nodes of one that only goes forward are down.
fn is_in_hand(facts: &Input, is_it: impl Fn(&Member) -> bool) -> bool {
    let is_late = facts.restart().is_some_and(|restart| facts.is_late_forward(restart));
    !is_late && facts.snapshot.ledger.under_way().any(is_it)
}

#[test] // proves RESTART-111
fn a_node_that_is_down_and_not_shown_is_found() {
    use crate::tests::linter::moment;
    use crate::{Policy, report};

    let (snapshot, made) = moment(|made, _| !made.waiting.is_empty());
    let policy = Policy::default();
    let is_at_rest =
        |pod: &&mut Pod| snapshot.ledger.under_way().all(|member| member.pod_uid != pod.uid);
    for state in [State::Failed, State::Stuck, State::Backoff, State::Stopped, State::Running] {
        let mut spoiled = snapshot.clone();
        let pod = spoiled.pods.iter_mut().find(is_at_rest).unwrap();
        let node = pod.node.clone();
        pod.manager.as_mut().unwrap().state = state;
        if state == State::Running {
            spoiled.engine.as_mut().unwrap().nodes.retain(|one| one.name != node);
        }
        let found = |report: &Report| {
            let mut wrong = Vec::new();
            check(&Input::new(&spoiled, &policy), report, &mut wrong);
            wrong
        };
        assert_eq!(found(&report(&spoiled, &policy, &made)), Vec::<String>::new(), "{state:?}");
        let mut silent = report(&snapshot, &policy, &made);
        for condition in &mut silent.conditions {
            (condition.status, condition.reason) = ("False".into(), "NothingOwed".into());
        }
        let wrong = found(&silent);
        assert_eq!(wrong.len(), 4, "{state:?}: {wrong:?}");

        let shown = report(&spoiled, &policy, &made);
        let mut wrong = Vec::new();
        check(&Input::new(&snapshot, &policy), &shown, &mut wrong);
        assert_eq!(wrong, [format!("{node} is not down, and the table of nodes says so")]);
    }
}
