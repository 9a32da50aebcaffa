//! The phase of the cluster, what blocks it, and the message for people.

use std::collections::BTreeSet;

use super::{Counts, debts};
use crate::flow::why_kept;
use crate::{
    Code, Direction, OnConfigChange, Outcome, Plan, Policy, Predicate, Snapshot, Waiting,
    annotation,
};

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

/// What blocks the cluster, or what it waits for, or what a person should do. A deletion that waits
/// always says for what.
pub(super) fn message(
    snapshot: &Snapshot,
    policy: &Policy,
    plan: &Plan,
    blocker: Option<&Waiting>,
    counts: &Counts,
) -> Option<String> {
    let message = what_to_know(snapshot, policy, plan, blocker, counts);
    let cluster = &snapshot.cluster;
    if !cluster.deleting || !cluster.finalizer {
        return message;
    }
    let what = message.unwrap_or_else(|| left_to_do(snapshot));
    Some(format!(
        "deleted as soon as everything is as it was: {what}; with its pods deleted, too, it goes at \
         once; if nobody is to undo this, remove its finalizer {}",
        annotation::FINALIZER
    ))
}

/// What is unfinished of a SearchCluster that is being deleted, if no node says more.
fn left_to_do(snapshot: &Snapshot) -> String {
    let ledger = &snapshot.ledger;
    let mut nodes: Vec<&str> = ledger.under_way().map(|member| member.node.as_str()).collect();
    nodes.extend(ledger.debts.start.iter().map(|debt| debt.node.as_str()));
    let releasing = ledger.kept_stopped.iter().filter(|kept| kept.releasing);
    nodes.extend(releasing.map(|kept| kept.node.as_str()));
    match nodes.as_slice() {
        [] => "annotations are removed from its pods".into(),
        nodes => format!("{} must be started", nodes.join(", ")),
    }
}

fn what_to_know(
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
