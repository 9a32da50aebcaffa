//! The end of a restart and of the SearchCluster itself, and the reports about them.

use std::collections::BTreeMap;

use crate::changes::Changes;
use crate::flow::labels::are_ahead;
use crate::flow::observed::is_deleted_with_its_pods;
use crate::flow::phases::{StalePhases, result_of, stale_phases, stale_phases_at_deletion};
use crate::flow::requests::drift::remember_reverted;
use crate::flow::requests::is_own;
use crate::ledger::{LedgerChange, RestartChange};
use crate::report::Estimate;
use crate::{
    Action, Blocker, Code, Color, Context, Ending, HistoryEntry, Ledger, Member, NodeResult,
    Outcome, Reason, Request, Restart, UpdateStep, ended_recently,
};

/// Ends a restart whose deadline has passed while nodes wait for their turn. This comes before nodes
/// get slots: otherwise one would get its slot in the write that ends the restart.
pub(crate) fn end_at_deadline(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = ledger.restart.as_ref().filter(|restart| restart.ending.is_none()) else {
        return changes;
    };
    // Before `not_before` the restart may not stop anything.
    let from = restart.request.not_before.map_or(restart.started, |at| at.max(restart.started));
    let elapsed = context.snapshot.now.since(from);
    if restart.has_scheduled()
        && restart.request.deadline.is_some_and(|deadline| elapsed >= deadline.0)
    {
        changes.end_with(Outcome::Aborted, "the request's deadline has passed");
    }
    changes
}

/// Ends the restart once no node is under way and none waits for its turn.
pub(crate) fn finish_restart(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = &ledger.restart else { return changes };
    let ending = restart.ending.clone();
    if restart.members.iter().any(Member::is_under_way)
        || (restart.has_scheduled() && ending.is_none())
    {
        return changes;
    }
    let unreported = unreported(context, restart);
    let mut given_up = None;
    // The history has only the result of the whole restart. The ledger also has room for the result of one
    // node, mostly the last; those of more nodes are first shown on their pods.
    match (&unreported.shown[..], &unreported.unlisted[..]) {
        ([member], []) | ([], [member, ..]) => {
            let id = &restart.request.id;
            let last = result_of(id, member, context.snapshot.now);
            let result = last.map(|last| NodeResult { pod_uid: member.pod_uid.clone(), last });
            changes.ledger.extend(result.map(LedgerChange::SetLastResult));
        }
        ([], []) => {}
        (shown, _) => match stale_phases(context, restart, shown) {
            StalePhases::Waits => return changes,
            StalePhases::Late => {
                changes.change(RestartChange::SetStuck(Some(context.snapshot.now)));
                return changes;
            }
            StalePhases::GivenUp(why) => given_up = Some(why),
        },
    }
    let ending = ending.map(|ending| without_stays(restart, ending));
    let ending = ending.unwrap_or_else(|| ending_of_members(restart));
    changes.ledger.extend(remember_reverted(context, ledger, restart));
    changes.merge(record_end(context, restart, ending, restart.done().count(), given_up));
    changes.change(LedgerChange::CloseRestart);
    changes
}

/// Members that have ended and whose pods may not show the result.
struct Unreported<'a> {
    /// Members whose pods still show a phase.
    shown: Vec<&'a Member>,
    /// Members whose pods are not listed now, and may show a phase once they are again.
    unlisted: Vec<&'a Member>,
}

fn unreported<'a>(context: &Context<'_>, restart: &'a Restart) -> Unreported<'a> {
    let index = &context.index;
    let ended = restart.members.iter().filter(|one| one.has_result());
    let mut unreported = Unreported { shown: Vec::new(), unlisted: Vec::new() };
    for member in ended {
        match index.place(&member.pod_uid) {
            Some(pod) if index.marks_at(pod).shown.is_some() => unreported.shown.push(member),
            None if index.successor(member).is_none() => unreported.unlisted.push(member),
            Some(_) | None => {}
        }
    }
    unreported
}

/// Reports the progress of nodes that leave the cluster.
pub(crate) fn report_leaving(context: &Context<'_>, _: &Ledger) -> Changes {
    let mut changes = Changes::default();
    for pod in context.index.pods() {
        if let Some(how_far) = &pod.leaving {
            changes.wait(&pod.uid, Code::Leaving, format!("it leaves the cluster: {how_far}"));
        }
    }
    changes
}

/// Removes our finalizer once no debt is left, nothing of ours is left on the pods, and every node that is
/// not to be kept stopped is started. Pods that cannot be patched hold up a deletion for a phase. As long as
/// a late request of ours may arrive, the finalizer stays: nobody else would undo that request. If the
/// SearchCluster is being deleted, nodes that are to be kept stopped stay stopped; otherwise the finalizer
/// stays for them.
pub(crate) fn release_finalizer(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    let settled = ledger.restart.is_none()
        && ledger.debts.is_empty()
        && !ledger.kept_stopped.iter().any(|kept| kept.releasing);
    if !cluster.finalizer || !settled || context.has_changed(ledger) {
        return Changes::default();
    }
    let marks = || context.index.marked_pods().map(|(_, marks)| marks);
    let may_arrive_late = ended_recently(context.snapshot) && !is_deleted_with_its_pods(context);
    let may_be_needed = || {
        let mut removed = ledger.removed_exclusions.iter();
        ledger.queued.is_some()
            || !ledger.kept_stopped.is_empty()
            || removed.any(|one| one.may_come_again(context.snapshot.now))
            || are_ahead(context, ledger)
            || marks().any(|marks| marks.is_to_be_stopped)
    };
    if may_arrive_late || (!cluster.deleting && may_be_needed()) {
        return Changes::default();
    }
    let shows = context
        .index
        .marked_pods()
        .filter(|(pod, marks)| marks.shown.is_some() || pod.ahead.is_some());
    let mut nodes = shows.map(|(pod, _)| pod.node.as_str()).peekable();
    if nodes.peek().is_none() {
        return Changes::action(Action::RemoveFinalizer);
    }
    if !cluster.deleting {
        return Changes::default();
    }
    match stale_phases_at_deletion(context, ledger, nodes) {
        StalePhases::Waits => {
            Changes { requeue: Some(context.policy.phase_timeout), ..Changes::default() }
        }
        StalePhases::Late => Changes::of_ledger(LedgerChange::SetStillShown(context.snapshot.now)),
        StalePhases::GivenUp(why) => {
            let mut changes = Changes::action(Action::RemoveFinalizer);
            changes.event(None, Reason::DebtIncurred, format!("Deleted, and {why}"));
            changes
        }
    }
}

/// Corrects an ending that was recorded as rolled back before the apiserver refused to roll a pod back: the
/// restart counts as aborted.
fn without_stays(restart: &Restart, ending: Ending) -> Ending {
    let mut stayed = restart.members.iter().filter(|member| member.is_not_set_back());
    let reason = stayed.find_map(|member| {
        let reason = &member.ending.as_ref()?.reason;
        Some(format!("{}: {reason}", member.node))
    });
    match reason.filter(|_| ending.outcome == Outcome::RolledBack) {
        Some(reason) => Ending { outcome: Outcome::Aborted, reason },
        None => ending,
    }
}

/// The ending of a restart that was not aborted or cancelled: done if all of its members are done. A restart
/// that the reconciler requested itself leaves nodes out before their turn; they get one of their own if they
/// need it.
fn ending_of_members(restart: &Restart) -> Ending {
    let is_left_out = |member: &Member, ending: &Ending| {
        let had_no_turn = member.stop_sequence == 0 && ending.outcome == Outcome::Interfered;
        had_no_turn && is_own(restart)
    };
    let left = restart.members.iter().find_map(|member| {
        let ending = member.ending.as_ref().filter(|ending| !is_left_out(member, ending))?;
        (ending.outcome != Outcome::Done).then(|| Ending {
            outcome: ending.outcome,
            reason: format!("{}: {}", member.node, ending.reason),
        })
    });
    left.unwrap_or(Ending::done())
}

/// Minimum number of nodes for progress events, and the number of these events: with fewer nodes the event of
/// each node is enough.
const MANY: usize = 10;

/// Reports when another tenth of the nodes is done. The event belongs to the ledger write that
/// finishes the node, so it is recorded once. The end of the restart has its own event.
pub(crate) fn report_progress(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let (Some(before), Some(restart)) = (&context.snapshot.ledger.restart, &ledger.restart) else {
        return changes;
    };
    let (id, nodes, done) = (&restart.request.id, restart.members.len(), restart.nodes_finished());
    let tenth = |done: usize| done * MANY / nodes;
    if *id != before.request.id
        || nodes < MANY
        || done == nodes
        || tenth(done) <= tenth(before.nodes_finished())
    {
        return changes;
    }
    let estimate = Estimate::of(restart, context.snapshot.now);
    let left = estimate.map(|estimate| format!(", estimate: {}", estimate.left()));
    let message = format!("Restart {id}: {done} of {nodes} nodes done{}", left.unwrap_or_default());
    changes.event(None, Reason::RestartProgress, message);
    changes
}

/// Reports how a restart ended, and adds it to the history. `nodes`: the number of nodes that are done.
/// `left`: a sentence on what the restart has left behind.
pub(crate) fn record_end(
    context: &Context<'_>,
    restart: &Restart,
    mut ending: Ending,
    nodes: usize,
    left: Option<String>,
) -> Changes {
    let seconds = context.snapshot.now.since(restart.started) / 1000;
    let id = &restart.request.id;
    let (reason, message) = match ending.outcome {
        Outcome::Done => {
            let not_green = not_green(context);
            let health = not_green.as_deref().unwrap_or("the cluster is green");
            let s = if nodes == 1 { "" } else { "s" };
            let also = left.iter().map(|left| format!("; {left}")).collect::<String>();
            let message =
                format!("Restart {id} is done: {nodes} node{s} in {seconds} s; {health}{also}");
            let reasons: Vec<String> = not_green.into_iter().chain(left).collect();
            ending.reason = reasons.join("; ");
            (Reason::RestartFinished, message)
        }
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => {
            let reasons: Vec<String> = std::iter::once(ending.reason).chain(left).collect();
            ending.reason = reasons.join("; ");
            let message = format!("Restart {id}: {} ({})", ending.outcome.as_str(), ending.reason);
            (Reason::RestartAborted, message)
        }
    };
    let mut changes = Changes::default();
    changes.event(None, reason, message);
    changes.change(LedgerChange::AddHistory(HistoryEntry {
        id: id.clone(),
        strategy: restart.request.strategy,
        outcome: ending.outcome,
        reason: ending.reason,
        started: restart.started,
        began: restart.began,
        seconds,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        steps: steps(restart),
        skipped_rules: restart.request.skip_rules.clone(),
        allowed_outage: restart.request.allow_outage,
    }));
    changes
}

/// Number of nodes restarted by each step, by its name.
fn steps(restart: &Restart) -> BTreeMap<String, u32> {
    let mut steps = BTreeMap::new();
    for member in restart.done() {
        let step = member.done_by.unwrap_or(UpdateStep::Restart);
        *steps.entry(step.name().to_owned()).or_default() += 1;
    }
    steps
}

/// Sentence on the health of the cluster at this moment, unless it is green.
fn not_green(context: &Context<'_>) -> Option<String> {
    let health = context
        .index
        .engine()
        .and_then(|engine| engine.health.as_ref().map_err(Blocker::engine_unreachable));
    let health = match health {
        Ok(health) => health,
        Err(blocker) => {
            return Some(format!("the cluster's health was not known: {}", blocker.message));
        }
    };
    let color = match health.color {
        Color::Green => return None,
        Color::Yellow => "yellow",
        Color::Red => "red",
        Color::Unknown => "of unknown health",
    };
    let copies = match health.unassigned + health.initializing {
        0 => String::new(),
        1 => ", 1 shard copy not started".to_owned(),
        many => format!(", {many} shard copies not started"),
    };
    Some(format!("the cluster was not green yet: {color}{copies}"))
}

/// History entry of a request that ended before it began.
pub(crate) fn record_unbegun(
    context: &Context<'_>,
    request: &Request,
    outcome: Outcome,
    reason: String,
) -> LedgerChange {
    LedgerChange::AddHistory(HistoryEntry {
        id: request.id.clone(),
        strategy: request.strategy,
        outcome,
        reason,
        started: context.snapshot.now,
        began: None,
        seconds: 0,
        nodes: 0,
        steps: BTreeMap::new(),
        skipped_rules: request.skip_rules.clone(),
        allowed_outage: request.allow_outage,
    })
}
