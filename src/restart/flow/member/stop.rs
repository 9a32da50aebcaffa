//! The `stop` phase of one node: the config, the preparation of the engine, the rules again, the stop.
//!
//! The drain begins while the stop is prepared. The stop signal is sent as soon as Services send the node no
//! requests any more; if that is unknown, the manager ends the drain by itself.

use crate::flow::begin::operator_hold::OperatorHold;
use crate::flow::engine::voting::hand_over;
use crate::flow::engine::{is_limited_for, is_to_be_flushed, prepare};
use crate::flow::labels::until_operator_has_seen;
use crate::flow::member::give_back::{may_stop, why_not};
use crate::flow::member::replaced::{may_be_deleted, until_started};
use crate::flow::member::start::{until_mounted, why_not_mounted};
use crate::flow::member::update;
use crate::flow::observed::is_over_time;
use crate::flow::requests::configs::may_change_alone;
use crate::flow::turn::{GiveBack, Turn, TurnView};
use crate::{Action, Blocker, Code, Context, Drain, Endpoint, Manager, Pod, Resume};
use stayput_api::State;

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
pub(crate) fn stop(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Turn {
    let TurnView { context, member, .. } = *view;
    match prepare_stop(view, pod, manager) {
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
fn prepare_stop(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, restart, member, .. } = *view;
    if let Some(ending) = &restart.ending {
        // This engine was not stopped. The compensation has a higher sequence than a stop that may
        // still arrive.
        return Err(Turn::Abort(ending.reason.clone()));
    }
    if let Some(why) = GiveBack::if_held(context, &restart.request) {
        return Err(Turn::GiveBack(why));
    }
    if let Err(Blocker { message: reason, .. }) =
        OperatorHold::of(context, &restart.request).check(pod)
    {
        return Err(Turn::GiveBack(GiveBack { reason, by_rule: false }));
    }
    // The engine has failed together with its whole set: a stop costs nothing.
    let has_failed = context.failed_sets().whole_set_failed(pod);
    let is_late = is_over_time(context, member, 1);
    let rules_allow = || match why_not(view, pod, is_late) {
        Some(blocker) => Err(Turn::GiveBack(GiveBack { reason: blocker.message, by_rule: true })),
        None => Ok(()),
    };
    // The allocation limit for this stop may be what keeps the cluster from recovering.
    if !has_failed && is_limited_for(view) {
        rules_allow()?;
    }
    if is_late {
        let why = why_not_stopped(view, pod, manager);
        return Err(Turn::Abort(format!("not stopped in time: {why}")));
    }
    context.preflight(pod)?;
    until_started(context, restart, pod, manager)?;
    update::refresh(view, pod)?;
    if let Err(blocker) = may_change_alone(view, pod, manager) {
        // An engine that has failed keeps nobody waiting.
        return Err(if has_failed {
            Turn::Wait(blocker)
        } else {
            Turn::GiveBack(GiveBack { reason: blocker.message, by_rule: true })
        });
    }
    until_mounted(view, pod, manager, false)?;
    if has_failed {
        may_be_deleted(view, pod)?;
        return prepare_failed(view);
    }
    hand_over(view)?;
    // The rules come first, so that nothing is limited in vain.
    rules_allow()?;
    prepare_and_flush(view, manager)?;
    // The owner may have wanted another template since the slot was taken.
    until_operator_has_seen(context)?;
    Ok(may_stop(view, pod)?)
}

/// Passes once the engine is prepared and flushed. Both are requested at the same time, with the drain: none
/// needs another.
fn prepare_and_flush(view: &TurnView<'_, '_>, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    if context.snapshot.flushed.contains(&member.node) {
        return prepare(view);
    }
    let is_to_be_flushed = is_to_be_flushed(context, &member.node);
    let (mut changes, blocker) = match prepare(view) {
        Ok(()) if is_to_be_flushed => {
            let flushing = Blocker { code: Code::Preparing, message: "flushing".into() };
            (Box::default(), Some(flushing))
        }
        Err(Turn::Act(changes, blocker)) if !changes.actions.is_empty() => (changes, blocker),
        other => return other,
    };
    changes.actions.extend(begin_drain(view, manager));
    let flush = || Action::Flush { node: member.node.clone() };
    changes.actions.extend(is_to_be_flushed.then(flush));
    Err(Turn::Act(changes, blocker))
}

/// Like [`prepare`], for an engine that is down with its whole set: there is nothing to flush, and if the
/// cluster is unreachable there is nothing to prepare.
fn prepare_failed(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    match view.context.index.engine() {
        Ok(_) => prepare(view),
        Err(blocker) if blocker.code == Code::WrongCluster => Err(Turn::Wait(blocker)),
        Err(_) => Ok(()),
    }
}

/// Reason of an abort before the stop: the first condition that the stop waited for.
fn why_not_stopped(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> String {
    let TurnView { context, .. } = *view;
    if let Err(blocker) = context.preflight(pod) {
        return blocker.message;
    }
    if let Some(why) = why_not_mounted(pod, manager) {
        return why;
    }
    match may_stop(view, pod) {
        Err(blocker) => blocker.message,
        Ok(()) => "the engine was not prepared, or the stop was not answered".into(),
    }
}

/// Time that kube-proxy has to follow an EndpointSlice, in milliseconds. By default it writes its rules at
/// once, but at most once a second: after another change within that second it may take up to half a second
/// longer.
const PROXY_DELAY: u64 = 500;

/// The drain request ahead of a member's stop, sent when the preparation begins. Nothing waits for it: an
/// older manager does not know the request, and drains after the stop only.
fn begin_drain(view: &TurnView<'_, '_>, manager: &Manager) -> Option<Action> {
    let TurnView { context, member, .. } = *view;
    let (uid, sequence) = (member.pod_uid.clone(), member.stop_sequence);
    let serves = context.policy.drain == Drain::Auto && manager.state == State::Running;
    serves.then_some(Action::Drain { uid, sequence })
}

/// The request that shortens the drain of the stop with this sequence, if the drain is known to be needlessly
/// long. Every plan sends it until the drain is over, half a second at most: no field of a manager's status
/// says when a drain ends, and a repeated stop changes and writes nothing.
pub(crate) fn end_drain(
    context: &Context<'_>,
    pod: &Pod,
    manager: &Manager,
    sequence: u64,
    resume: Option<Resume>,
    exit: bool,
) -> Option<Action> {
    if !is_automatic(context, manager) || manager.sequence != sequence {
        return None;
    }
    let drain = match pod.endpoint {
        Ok(Endpoint::Absent) => 0,
        Ok(Endpoint::NotReady) => {
            let since = pod.unserved_since.unwrap_or(context.snapshot.now);
            PROXY_DELAY.saturating_sub(context.snapshot.now.since(since))
        }
        Ok(Endpoint::Ready) | Err(_) => return None,
    };
    Some(Action::EndDrain { uid: pod.uid.clone(), sequence, drain, resume, exit })
}

/// Reason why the stop of this node waits, if the node drains.
pub(crate) fn describe(context: &Context<'_>, pod: &Pod, manager: &Manager) -> Option<String> {
    if !is_automatic(context, manager) {
        return None;
    }
    let most = Drain::LONGEST / 1000;
    Some(match &pod.endpoint {
        Ok(Endpoint::Ready) => {
            format!("it is not ready until no Service sends requests to it, at most {most} s")
        }
        Ok(Endpoint::NotReady | Endpoint::Absent) => {
            "no Service sends requests to it any more; its engine is being stopped".into()
        }
        Err(unknown) => format!(
            "it is not ready for {most} s, since it is not known whether Services still send \
             requests to it: {}",
            unknown.message
        ),
    })
}

fn is_automatic(context: &Context<'_>, manager: &Manager) -> bool {
    context.policy.drain == Drain::Auto && manager.draining
}
