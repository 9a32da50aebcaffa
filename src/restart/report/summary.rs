//! The phase of the cluster, what blocks it, and the message for people.

use std::collections::BTreeSet;

use super::{Counts, debts};
use crate::flow::why_kept;
use crate::{Code, Direction, OnConfigChange, Outcome, Plan, Policy, Predicate, Snapshot, Waiting};

/// What blocks the cluster. While a node is under way the others wait for it and not for a rule: then
/// only what that node itself waits for counts.
pub(super) fn blocker<'a>(snapshot: &Snapshot, plan: &'a Plan) -> Option<&'a Waiting> {
    let under_way = under_way(snapshot);
    let counts = |waiting: &&Waiting| {
        let of_it = waiting.pod.as_deref().is_some_and(|uid| under_way.contains(uid));
        waiting.code.blocks() && (under_way.is_empty() || of_it)
    };
    // Invalid input comes last. A limit that is reached comes after the reason why it is reached.
    // What blocks the whole cluster comes before what blocks one pod.
    plan.waiting.iter().filter(counts).min_by_key(|waiting| {
        let is = |code| waiting.code == code;
        (
            is(Code::InvalidInput),
            is(Code::Predicate(Predicate::MaxUnavailable)),
            waiting.pod.is_some(),
            *waiting,
        )
    })
}

pub(super) fn under_way(snapshot: &Snapshot) -> BTreeSet<&str> {
    debts::under_way(&snapshot.ledger)
}

pub(super) fn phase(
    snapshot: &Snapshot,
    blocker: Option<&Waiting>,
    counts: &Counts,
) -> &'static str {
    let blocked = blocker.map(|waiting| match waiting.code == Code::Paused {
        true => "Paused",
        false => "Blocked",
    });
    if snapshot.cluster.deleting {
        return "Deleting";
    }
    if let Some(restart) = &snapshot.ledger.restart {
        let given_up =
            restart.ending.as_ref().is_some_and(|ending| ending.outcome != Outcome::Done);
        let under_way = if given_up || restart.direction == Direction::Back {
            "Aborting"
        } else {
            "Restarting"
        };
        return blocked.unwrap_or(under_way);
    }
    if !debts::due(&snapshot.ledger).is_empty() {
        return "Degraded";
    }
    match blocked {
        Some(blocked) => blocked,
        None if snapshot.cluster.paused => "Paused",
        None if counts.pending_restart > 0 => "PendingRestart",
        None => "Idle",
    }
}

/// What blocks the cluster, or what it waits for, or what a person should do.
pub(super) fn message(
    snapshot: &Snapshot,
    policy: &Policy,
    plan: &Plan,
    blocker: Option<&Waiting>,
    counts: &Counts,
) -> Option<String> {
    if let Some(waiting) = blocker {
        return Some(waiting.message.clone());
    }
    let due = debts::due(&snapshot.ledger);
    if !due.is_empty() {
        return Some(due.join("; "));
    }
    let under_way = under_way(snapshot);
    let of_it =
        |waiting: &&Waiting| waiting.pod.as_deref().is_some_and(|uid| under_way.contains(uid));
    if let Some(waiting) = plan.waiting.iter().filter(of_it).min() {
        return Some(waiting.message.clone());
    }
    let is_idle = snapshot.ledger.restart.is_none();
    if is_idle && counts.pending_restart > 0 && policy.on_config_change == OnConfigChange::None {
        let (nodes, their) = match counts.pending_restart {
            1 => ("1 node runs".to_owned(), "its"),
            many => (format!("{many} nodes run"), "their"),
        };
        return Some(format!(
            "{nodes} on another config than {their} sources have: request a restart"
        ));
    }
    let kept = snapshot.ledger.kept_phase.as_deref().filter(|_| is_idle);
    kept.map(|phase| why_kept(&snapshot.cluster, phase))
}
