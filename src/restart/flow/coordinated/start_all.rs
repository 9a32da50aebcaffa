//! The second half of a coordinated restart: all starts, masters first, and the proof that all are back. Then
//! the allocation limit is lifted; in a restart that only goes forward after a phase, because it does not end
//! while a node does not come back, and the copies of the others must not wait for that.

use crate::changes::Changes;
use crate::flow::answers::{
    describe_state, interfered, is_on_expected, is_overtaken, is_refused, runs_as_expected,
    start_above, start_failure, was_refused,
};
use crate::flow::coordinated::stop_all::{pod_and_manager, without_manager};
use crate::flow::coordinated::supersede::{
    Obstacle, is_stranded, stranded_blocker, why_not_superseded,
};
use crate::flow::coordinated::{active, complete, revert_config};
use crate::flow::engine::{limit_left_behind, needs_limit, restore_allocation};
use crate::flow::member::changes_of;
use crate::flow::member::start::{not_mounted, nudge_and_wait, send_start};
use crate::flow::member::stop::resume_on;
use crate::flow::observed::{has_joined, is_over_time, not_paused};
use crate::flow::turn::{Turn, TurnView, wait};
use crate::ledger::{LedgerChange, RestartChange};
use crate::{
    Action, Blocker, Code, Context, Direction, Ending, Ledger, Manager, Member, Outcome, Pod,
    Restart,
};
use stayput_api::State;

/// Minimum time before a failed start is retried in a restart that only goes forward, in milliseconds.
const RETRY: u64 = 30_000;

/// Starts all nodes, masters first, without waiting until one is ready; then waits until all are
/// back.
pub(crate) fn start_all(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = &ledger.restart else { return changes };
    let masters_asked = are_masters_requested(context, restart);
    let obstacle = why_not_superseded(context, ledger, restart);
    // Once a member has joined, the restart does not turn back, however late that is seen.
    let is_decided = restart.direction == Direction::Open && has_any_joined(context, restart);
    let mut all_back = true;
    for (index, member) in active(restart) {
        let may = member.master_eligible || masters_asked;
        let view = &TurnView { context, ledger, restart, index, member };
        match start_member(view, may, obstacle.as_ref()) {
            Ok(()) => {}
            Err(Turn::Abort(_)) if is_decided => all_back = false,
            Err(Turn::Abort(reason)) if restart.direction == Direction::Open => {
                let reason = format!("{}: {reason}", member.node);
                return revert_config(context, restart, &reason, changes.waits);
            }
            Err(Turn::Abort(reason)) => {
                all_back = false;
                changes.merge(try_again(view, &reason));
            }
            Err(turn) => {
                all_back = false;
                changes.merge(changes_of(view, turn));
            }
        }
    }
    if !changes.ledger.is_empty() || context.has_changed(ledger) {
        return changes;
    }
    if is_decided {
        changes.change(RestartChange::SetDirection(Direction::Forward));
    } else if all_back {
        changes.merge(complete(context, ledger, restart));
    } else {
        changes.merge(lift_limit_late(context, ledger, restart));
    }
    changes
}

/// True if every master-eligible member has been asked to start. Once the restart only goes forward, a master
/// that cannot be started does not delay the other nodes.
fn are_masters_requested(context: &Context<'_>, restart: &Restart) -> bool {
    let is_asked = |member: &Member| {
        let manager = context.index.manager(&member.pod_uid);
        manager.is_ok_and(|manager| manager.sequence >= member.start_sequence)
    };
    let mut masters = active(restart).filter(|(_, member)| member.master_eligible);
    masters.all(|(_, one)| is_asked(one))
        || restart.direction == Direction::Forward
            && active(restart).any(|(_, one)| is_asked(one) || is_over_time(context, one, 1))
}

/// True if a member has joined the cluster after its start: the first one decides the direction.
fn has_any_joined(context: &Context<'_>, restart: &Restart) -> bool {
    active(restart).any(|(_, member)| {
        let manager = context.index.manager(&member.pod_uid);
        manager.is_ok_and(|manager| manager.sequence >= member.start_sequence)
            && has_joined(context, member) == Ok(true)
    })
}

/// State of a member that is to be started. The first that applies counts, in this order.
enum Shown<'t> {
    Unreachable(Blocker),
    /// The manager refused a request with a higher sequence than our start: it would refuse our start, too.
    RefusedHigher(&'t Manager),
    /// A request of another client is in force.
    Overtaken(&'t Manager),
    /// The config that it is to be started on is gone.
    Stranded,
    /// Our start has not arrived.
    NotStarted(&'t Manager),
    RefusedStart(&'t Manager),
    /// The engine ended, or runs on another config, for this reason.
    Failed(String),
    Started(&'t Manager),
}

fn shown<'t>(view: &TurnView<'t, '_>, manager: Result<&'t Manager, Blocker>) -> Shown<'t> {
    let TurnView { context, restart, member, .. } = *view;
    let manager = match manager {
        Ok(manager) => manager,
        Err(blocker) => return Shown::Unreachable(blocker),
    };
    if manager.sequence > member.start_sequence && is_refused(manager) {
        Shown::RefusedHigher(manager)
    } else if is_overtaken(manager, member) {
        Shown::Overtaken(manager)
    } else if is_stranded(context, restart, member) {
        Shown::Stranded
    } else if manager.sequence < member.start_sequence {
        Shown::NotStarted(manager)
    } else if was_refused(manager, member.start_sequence) {
        Shown::RefusedStart(manager)
    } else if let Some(reason) = start_failure(manager, member) {
        Shown::Failed(reason)
    } else {
        Shown::Started(manager)
    }
}

/// The next step of a member; passes once the member is proven back. `may`: the start may be sent now.
/// `obstacle`: the reason why no queued request supersedes this restart.
fn start_member(
    view: &TurnView<'_, '_>,
    may: bool,
    obstacle: Option<&Obstacle>,
) -> Result<(), Turn> {
    let TurnView { context, restart, member, .. } = *view;
    let (pod, manager) = pod_and_manager(view)?;
    let is_late = is_over_time(context, member, 1);
    Err(match shown(view, manager) {
        // All engines were stopped, and are started on one config only.
        Shown::Unreachable(blocker) if restart.direction == Direction::Forward => {
            without_manager(context, member, pod, blocker, false)
        }
        Shown::Unreachable(blocker) if is_late => {
            Turn::Abort(format!("no answer in time: {}", blocker.message))
        }
        Shown::Unreachable(blocker) => Turn::Wait(blocker),
        Shown::RefusedHigher(manager) => Turn::change(Member {
            start_sequence: start_above(member, manager.sequence),
            ..member.clone()
        }),
        Shown::Overtaken(manager) => interfered(manager, member),
        Shown::Stranded => Turn::Wait(stranded_blocker(context, restart, member, obstacle)),
        Shown::NotStarted(manager) if is_late && restart.direction == Direction::Open => {
            Turn::Abort(format!("not started in time: {}", describe_state(manager)))
        }
        Shown::NotStarted(_) if !may => {
            wait(Code::Barrier, "nodes that can be elected are started first")
        }
        Shown::NotStarted(manager) if manager.mounted != member.expected => {
            nudge_and_wait(context, pod, member.expected.as_deref(), not_mounted(pod))
        }
        Shown::NotStarted(manager) => match stop_new_pod(view, pod, manager) {
            Err(turn) => turn,
            Ok(()) => send_start(member),
        },
        Shown::RefusedStart(manager) if is_late => {
            Turn::Abort(format!("its start is refused: {}", describe_state(manager)))
        }
        // Nothing was started, and the manager decides again on the same request.
        Shown::RefusedStart(_) => send_start(member),
        Shown::Failed(reason) => Turn::Abort(reason),
        Shown::Started(manager) => return prove(view, manager, is_late),
    })
}

/// Passes once a started member is proven back: it has joined and is ready.
fn prove(view: &TurnView<'_, '_>, manager: &Manager, is_late: bool) -> Result<(), Turn> {
    let TurnView { context, restart, member, .. } = *view;
    let joined = has_joined(context, member);
    if is_late && restart.direction == Direction::Open {
        let state = describe_state(manager);
        let unknown =
            joined.err().map_or(String::new(), |blocker| format!("; {}", blocker.message));
        return Err(Turn::Abort(format!("not back in time: {state}{unknown}")));
    }
    match joined {
        Ok(true) if manager.is_ready() => Ok(()),
        // It runs on the same config as the others, so the cluster is not split.
        Ok(true) if is_late => Err(Turn::finish(Ending {
            outcome: Outcome::Aborted,
            reason: format!("it has joined and was not ready in time: {}", describe_state(manager)),
        })),
        Ok(true) => Err(wait(Code::NotReady, "it has joined and is not ready yet")),
        Ok(false) if is_over_time(context, member, 2) => Err(Turn::finish(Ending {
            outcome: Outcome::Aborted,
            reason: format!(
                "{}, and the cluster does not list it: see its log, then restart this node",
                describe_state(manager)
            ),
        })),
        Ok(false) => Err(wait(Code::Joining, "started; the cluster does not list it yet")),
        // Without a majority no node answers until enough of them are back.
        Err(blocker) if blocker.code == Code::EngineUnreachable && !is_late => {
            let message =
                format!("started; what the cluster lists is unknown: {}", blocker.message);
            Err(wait(Code::Joining, message))
        }
        Err(blocker) => Err(Turn::Wait(blocker)),
    }
}

/// Stops the engine of a pod that replaced a member's pod after the others were stopped. Passes once that
/// engine is stopped, too; or, while nothing may be stopped, if it runs on the config that it is to be
/// started on.
fn stop_new_pod(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    if manager.sequence >= member.stop_sequence {
        // An engine that has ended by itself can be started without a stop.
        let is_down = matches!(manager.state, State::Stopped | State::Failed | State::Backoff);
        return if is_down || runs_as_expected(manager, member) {
            Ok(())
        } else {
            Err(wait(Code::Stopping, describe_state(manager)))
        };
    }
    match may_stop(view) {
        Err(_) if is_on_expected(manager, member) => return Ok(()),
        other => other?,
    }
    context.preflight(pod)?;
    let uid = member.pod_uid.clone();
    let resume = Some(resume_on(member.expected.clone()));
    Err(Turn::act(Action::Stop {
        uid,
        sequence: member.stop_sequence,
        drain: 0,
        resume,
        exit: false,
    }))
}

/// Passes unless the cluster is paused, or the restart was cancelled and can turn back.
fn may_stop(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, restart, .. } = *view;
    not_paused(context)?;
    match restart.ending.as_ref().filter(|_| restart.direction == Direction::Open) {
        Some(ending) => Err(Turn::Abort(ending.reason.clone())),
        None => Ok(()),
    }
}

/// Retries a failed start with a new sequence, in a restart that only goes forward.
fn try_again(view: &TurnView<'_, '_>, reason: &str) -> Changes {
    let TurnView { context, index, member, .. } = *view;
    let mut changes = Changes::default();
    let uid = &member.pod_uid;
    let is_due = context.snapshot.now.since(member.since) >= RETRY;
    if let Some(manager) = context.index.manager(uid).ok().filter(|_| is_due) {
        let mut again = member.clone();
        again.since = context.snapshot.now;
        again.start_sequence = start_above(member, manager.sequence);
        changes.set_member(index, again);
    } else {
        let message = format!("{reason}; others have joined, so it is retried and not reverted");
        changes.wait(uid, Code::Joining, message);
    }
    changes
}

/// The step that is due until allocation is as it was before the restart.
pub(crate) enum LimitLift {
    /// There is no allocation debt.
    Done,
    /// The setting is as it was before: the change that removes the debt.
    Release(LedgerChange),
    Restore(Action),
}

/// Decides on the next step until allocation is as it was before the restart. Fails if the setting is
/// unknown.
pub(crate) fn lift_limit(context: &Context<'_>, ledger: &Ledger) -> Result<LimitLift, Blocker> {
    let Some(debt) = &ledger.debts.allocation else { return Ok(LimitLift::Done) };
    let allocation = context.index.allocation()?;
    Ok(match restore_allocation(context, allocation) {
        Some(action) => LimitLift::Restore(action),
        None => LimitLift::Release(LedgerChange::ReleaseAllocation {
            pod_uids: debt.holders.clone(),
            is_restored: limit_left_behind(allocation, debt).is_none(),
        }),
    })
}

/// Restores allocation if no member needs the limit, or if a restart that only goes forward is late. Does
/// nothing while the engine is unreachable: the members wait for it.
pub(crate) fn lift_limit_late(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Changes {
    let mut changes = Changes::default();
    let is_late = restart.is_late_forward(context.snapshot.now, context.policy.phase_timeout);
    if !is_late && !is_in_vain(context, ledger) {
        return changes;
    }
    match lift_limit(context, ledger) {
        Ok(LimitLift::Done) | Err(_) => {}
        Ok(LimitLift::Release(change)) => changes.change(change),
        Ok(LimitLift::Restore(action)) => {
            changes.act(action);
            let message = if is_late {
                "not every node is back in time: restoring allocation anyway"
            } else {
                "no node needs limited allocation any more: restoring it"
            };
            changes.wait_all(Code::RestoringAllocation, message);
        }
    }
    changes
}

/// True if there are members under way, and none of them needs limited allocation.
fn is_in_vain(context: &Context<'_>, ledger: &Ledger) -> bool {
    let mut members = ledger.under_way().peekable();
    members.peek().is_some() && !members.any(|member| needs_limit(context, member))
}
