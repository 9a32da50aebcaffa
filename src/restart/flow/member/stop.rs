//! The `stop` phase of one node: first the config, then the preparation of the engine, then the
//! rules again, then the stop.

use super::deleted::may_be_deleted;
use super::last_check::{may_stop, why_not};
use super::mounted::{until_mounted, why_not_mounted};
use super::restarted::until_started;
use super::update;
use crate::context::Context;
use crate::flow::drain::begin_drain;
use crate::flow::engine::{
    allocation::is_limited_for, is_to_be_flushed, prepare, voting::hand_over,
};
use crate::flow::observed::is_over_time;
use crate::flow::requests::configs::may_change_alone;
use crate::flow::turn::{GiveBack, Turn};
use crate::{Action, Blocker, Code, Ledger, Manager, Member, Pod, Restart, Resume};

/// Time after which a manager restarts an engine that was stopped and not started, in milliseconds. Longer
/// than a stop and the check of its result take, and short for a cluster without a node.
const RESUME_AFTER: u64 = 10 * 60 * 1000;

/// When, and on which config, a manager restarts an engine that we stop if our start does not come.
///
/// A rolling restart gives no checksum: the manager then uses the config that it would use after a crash. The
/// expected config may not be mounted any more by then, and the engine would be down until somebody comes.
pub(crate) const fn resume_on(checksum: Option<String>) -> Resume {
    Resume { after: RESUME_AFTER, checksum }
}

/// Prepares `POST /es/stop` and sends it.
pub(super) fn stop(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
    manager: &Manager,
) -> Turn {
    match prepare_stop(context, ledger, restart, member, pod, manager) {
        Err(turn) => turn,
        Ok(()) => Turn::act(Action::Stop {
            uid: pod.uid.clone(),
            sequence: member.stop_sequence,
            drain: context.policy.drain.longest(),
            resume: Some(resume_on(None)),
            exit: update::exits(member, pod),
        }),
    }
}

/// Passes once everything is ready for the stop.
fn prepare_stop(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    pod: &Pod,
    manager: &Manager,
) -> Result<(), Turn> {
    if let Some(ending) = &restart.ending {
        // This engine was not stopped. The compensation has a higher sequence than a stop that may
        // still arrive.
        return Err(Turn::Abort(ending.reason.clone()));
    }
    if let Some(why) = GiveBack::if_held(context, &restart.request) {
        return Err(Turn::GiveBack(why));
    }
    // The engine has failed together with its whole set: a stop costs nothing.
    let has_failed = context.failed_sets().whole_set_failed(pod);
    let is_late = is_over_time(context, member, 1);
    let rules_allow = || match why_not(context, ledger, restart, pod, is_late) {
        Some(blocker) => Err(Turn::GiveBack(GiveBack { reason: blocker.message, by_rule: true })),
        None => Ok(()),
    };
    // The allocation limit for this stop may be what keeps the cluster from recovering.
    if !has_failed && is_limited_for(context, ledger, member) {
        rules_allow()?;
    }
    if is_late {
        let why = why_not_stopped(context, ledger, restart, pod, manager);
        return Err(Turn::Abort(format!("not stopped in time: {why}")));
    }
    context.preflight(pod)?;
    until_started(context, restart, pod, manager)?;
    update::refresh(context, restart, member, pod)?;
    if let Err(blocker) = may_change_alone(context, ledger, restart, pod, manager) {
        // An engine that has failed keeps nobody waiting.
        return Err(if has_failed {
            Turn::Wait(blocker)
        } else {
            Turn::GiveBack(GiveBack { reason: blocker.message, by_rule: true })
        });
    }
    until_mounted(context, member, pod, manager, false)?;
    if has_failed {
        may_be_deleted(context, ledger, restart, member, pod)?;
        return prepare_failed(context, ledger, restart, member);
    }
    hand_over(context, ledger, member)?;
    // The rules come first, so that nothing is limited in vain.
    rules_allow()?;
    prepare_and_flush(context, ledger, restart, member, manager)?;
    Ok(may_stop(context, ledger, restart, pod)?)
}

/// Passes once the engine is prepared and flushed. Both are requested at the same time, with the drain: none
/// needs another.
fn prepare_and_flush(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    manager: &Manager,
) -> Result<(), Turn> {
    if context.snapshot.flushed.contains(&member.node) {
        return prepare(context, ledger, restart, member);
    }
    let is_to_be_flushed = is_to_be_flushed(context, &member.node);
    let (mut changes, blocker) = match prepare(context, ledger, restart, member) {
        Ok(()) if is_to_be_flushed => {
            let flushing = Blocker { code: Code::Preparing, message: "flushing".into() };
            (Box::default(), Some(flushing))
        }
        Err(Turn::Act(changes, blocker)) if !changes.actions.is_empty() => (changes, blocker),
        other => return other,
    };
    changes.actions.extend(begin_drain(context, member, manager));
    let flush = || Action::Flush { node: member.node.clone() };
    changes.actions.extend(is_to_be_flushed.then(flush));
    Err(Turn::Act(changes, blocker))
}

/// Like [`prepare`], for an engine that is down with its whole set: there is nothing to flush, and if the
/// cluster is unreachable there is nothing to prepare.
fn prepare_failed(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Result<(), Turn> {
    match context.index.engine() {
        Ok(_) => prepare(context, ledger, restart, member),
        Err(blocker) if blocker.code == Code::WrongCluster => Err(Turn::Wait(blocker)),
        Err(_) => Ok(()),
    }
}

/// Reason of an abort before the stop: the first condition that the stop waited for.
fn why_not_stopped(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    pod: &Pod,
    manager: &Manager,
) -> String {
    if let Err(blocker) = context.preflight(pod) {
        return blocker.message;
    }
    if let Some(why) = why_not_mounted(pod, manager) {
        return why;
    }
    match may_stop(context, ledger, restart, pod) {
        Err(blocker) => blocker.message,
        Ok(()) => "the engine was not prepared, or the stop was not answered".into(),
    }
}
