//! The engine's own node-shutdown record of a node that will be back soon, where the engine
//! supports it.

use crate::changes::{Changes, Check, refuse};
use crate::context::Context;
use crate::flow::member::update::phases;
use crate::flow::observed::has_joined;
use crate::flow::turn::{Turn, TurnView, wait};
use crate::late_requests::{is_of_another, record_reason};
use crate::ledger::LedgerChange;
use crate::{Action, Blocker, Code, Engine, Ledger, Member, Operator, Reason, Record, RecordDebt};

/// The debt for a member's shutdown record, if there is one.
fn record_debt<'l>(ledger: &'l Ledger, member: &Member) -> Option<&'l RecordDebt> {
    ledger.debts.records.iter().find(|debt| debt.pod_uid == member.pod_uid)
}

/// The shutdown records of the engine; empty if it does not support them.
pub(crate) fn records<'a>(context: &Context<'a>) -> Result<&'a [Record], Blocker> {
    let records = context.index.engine()?.records.as_ref();
    let records = records.map_err(Blocker::engine_unreachable)?;
    Ok(records.as_deref().unwrap_or_default())
}

/// Message that the engine prepares for the restart, with the parts that are not complete.
pub(crate) fn prepares(record: Option<&Record>) -> String {
    let what = record.map(|record| record.preparing.join(", ")).unwrap_or_default();
    let with = if what.is_empty() { String::new() } else { format!("; not complete: {what}") };
    format!("the engine prepares for the restart{with}")
}

/// Passes unless another client has announced the restart of another node that is listed: two clients that
/// stop nodes of one engine do not see each other's stops in time.
pub(crate) fn is_alone(
    context: &Context<'_>,
    engine: &Engine,
    ledger: &Ledger,
    node_id: &str,
) -> Check {
    let records = engine.records.as_ref().map_err(Blocker::engine_unreachable)?;
    let is_another = |record: &&Record| {
        record.node_id != node_id && is_of_another(record, ledger, context.index.cluster())
    };
    let others = records.iter().flatten().filter(is_another);
    let mut listed = others.filter_map(|record| {
        let node = engine.nodes.iter().find(|node| node.id == record.node_id)?;
        Some((node, record))
    });
    let Some((node, record)) = listed.next() else { return Ok(()) };
    let message = format!(
        "another client restarts {} of this engine: its shutdown record has the reason {:?}; if nobody \
         does, delete it: DELETE /_nodes/{}/shutdown",
        node.name, record.reason, record.node_id
    );
    refuse(Code::ForeignController, message)
}

/// True if an operator would delete the shutdown record of this member before its node has left the cluster.
pub(crate) fn is_deleted_by_operator(context: &Context<'_>, member: &Member) -> bool {
    let pod = context.index.pod(&member.pod_uid);
    let operator = pod.and_then(|pod| pod.operator.as_ref());
    operator.is_some_and(Operator::deletes_records)
}

/// The message about a member that was stopped and is not back, and whose shutdown record another client has
/// deleted; `None` if the record is there, is not ours to expect, or cannot be read.
fn lost_record(view: &TurnView<'_, '_>) -> Option<String> {
    let TurnView { context, ledger, member, .. } = *view;
    let debt = record_debt(ledger, member)?;
    let records = context.index.engine().ok()?.records.as_ref().ok()?.as_ref()?;
    let is_there = records.iter().any(|record| debt.is_about(record, context.index.cluster()));
    let is_out = has_joined(context, member) == Ok(false);
    (is_out && !is_there).then(|| {
        format!(
            "another client deleted the shutdown record of {}: the engine may rebuild its copies on \
             other nodes; find that client and pause it",
            member.node
        )
    })
}

/// Adds a warning to the turn of a stopped member whose shutdown record another client has deleted.
pub(crate) fn tell_lost_record(view: &TurnView<'_, '_>, turn: Turn) -> Turn {
    let Some(message) = lost_record(view) else { return turn };
    let (mut changes, blocker) = match turn {
        Turn::Act(changes, blocker) => (changes, blocker),
        Turn::Wait(blocker) => (Box::default(), Some(blocker)),
        Turn::Change(..) | Turn::GiveBack(_) | Turn::Abort(_) | Turn::Finish(..) => return turn,
    };
    let blocker = blocker.map(|waits| Blocker {
        message: format!("{}; {message}", waits.message),
        code: waits.code,
    });
    changes.event(Some(&view.member.pod_uid), Reason::ForeignController, message);
    Turn::Act(changes, blocker)
}

/// Time after which a record that was set and is not there counts as deleted, in milliseconds.
const UNTIL_TOLD: u64 = 10_000;

/// The turn that sets the record. If the indices were flushed, which is done together with that, it was set before:
/// then another client deletes it.
fn put(view: &TurnView<'_, '_>, debt: &RecordDebt) -> Turn {
    let TurnView { context, restart, member, .. } = *view;
    let action = Action::PutRecord {
        node_id: debt.node_id.clone(),
        reason: record_reason(context.index.cluster(), &restart.request.id),
        allocation_delay: phases(member) * context.policy.phase_timeout,
    };
    let was_set = context.snapshot.flushed.contains(&member.node);
    if !was_set || context.snapshot.now.since(member.since) < UNTIL_TOLD {
        let message = "its restart is being announced to the engine";
        return Turn::act_and_wait(action, Code::Preparing, message);
    }
    let message = format!(
        "another client deletes the shutdown record of {} whenever it is set: find that client and pause it",
        member.node
    );
    let mut changes = Changes::action(action);
    changes.event(Some(&member.pod_uid), Reason::ForeignController, message.clone());
    Turn::Act(Box::new(changes), Some(Blocker { code: Code::ForeignController, message }))
}

/// Creates the record before the stop, and waits until the engine has prepared for the restart.
pub(crate) fn announce(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = record_debt(ledger, member) else { return Ok(()) };
    let cluster = context.index.cluster();
    let record = records(context)?.iter().find(|record| record.node_id == debt.node_id);
    Err(match record {
        None => put(view, debt),
        Some(record) if !(debt.is_about(record, cluster) && record.is_restart) => wait(
            Code::ForeignController,
            format!(
                "the engine already has a shutdown record for this node, by {:?}; the \
                 client that made it must delete it first",
                record.reason
            ),
        ),
        Some(record) if record.complete => return Ok(()),
        Some(record) => wait(Code::Preparing, prepares(Some(record))),
    })
}

/// Deletes the record once the node is proven back.
pub(crate) fn withdraw(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = record_debt(ledger, member) else { return Ok(()) };
    if !records(context)?.iter().any(|record| debt.is_about(record, context.index.cluster())) {
        return Ok(());
    }
    Err(Turn::act_and_wait(
        Action::DeleteRecord { node_id: debt.node_id.clone() },
        Code::RestoringAllocation,
        "its shutdown record is being deleted",
    ))
}

/// The ledger changes of a finished member: a record of it that no longer exists is no longer a debt.
pub(crate) fn settle(context: &Context<'_>, ledger: &Ledger, uid: &str) -> Vec<LedgerChange> {
    let Ok(records) = records(context) else { return Vec::new() };
    let is_there = |debt: &&RecordDebt| {
        records.iter().any(|record| debt.is_about(record, context.index.cluster()))
    };
    let debts = ledger.debts.records.iter();
    let gone = debts.filter(|debt| debt.pod_uid == uid && !is_there(debt));
    gone.cloned().map(LedgerChange::RemoveRecordDebt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves RESTART-162
    fn what_the_engine_has_not_finished_is_named() {
        let record = |preparing: &[&str]| Record {
            node_id: "a".into(),
            is_restart: true,
            reason: "r1".into(),
            complete: false,
            preparing: preparing.iter().map(|&part| part.to_owned()).collect(),
        };
        assert_eq!(prepares(None), "the engine prepares for the restart");
        assert_eq!(prepares(Some(&record(&[]))), "the engine prepares for the restart");
        assert_eq!(
            prepares(Some(&record(&["persistent_tasks", "plugins"]))),
            "the engine prepares for the restart; not complete: persistent_tasks, plugins"
        );
    }
}
