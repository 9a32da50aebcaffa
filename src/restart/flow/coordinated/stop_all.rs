//! The first half of a coordinated restart: the config is mounted everywhere, allocation is limited, the
//! indices are flushed, all nodes are stopped, and the checksums are frozen.
//!
//! A restart that only goes forward does not wait forever for an unreachable manager: the Kubernetes node
//! may be gone for good while the pod is still listed.

use crate::changes::Changes;
use crate::flow::answers::{
    describe_state, has_resumed, is_overtaken, is_refused, overtaken, runs_as_expected,
    take_sequences_above,
};
use crate::flow::coordinated::start_all::lift_limit_late;
use crate::flow::coordinated::supersede::may_be_stopped_again;
use crate::flow::coordinated::{WHOLE_CLUSTER, active, revert_config};
use crate::flow::engine::{is_to_be_flushed, limit_allocation};
use crate::flow::member::bring_back::owe_start_of_gone;
use crate::flow::member::start::{until_mounted, why_not_mounted};
use crate::flow::member::stop::{describe, end_drain, resume_on};
use crate::flow::member::{changes_of, give_back, replaced};
use crate::flow::observed::{if_gone_for_good, is_over_time, not_paused};
use crate::flow::turn::{GiveBack, Turn, TurnView};
use crate::index::NameSet;
use crate::ledger::RestartChange;
use crate::snapshot::namespace_and_name;
use crate::{
    Action, Blocker, Code, Context, Direction, Ledger, Manager, Member, MemberStep, Pod, Restart,
    annotation,
};
use stayput_api::{Desired, State};

/// Waits until the config is mounted everywhere, limits allocation and flushes once, and stops all nodes;
/// then freezes the checksums.
pub(crate) fn stop_all(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = &ledger.restart else { return changes };
    if let Some(why) = GiveBack::if_held(context, &restart.request)
        && none_was_stopped(context, restart)
    {
        return give_all_back(context, restart, &why);
    }
    let mut ready = true;
    let mut stopped = true;
    for (index, member) in active(restart) {
        let view = &TurnView { context, ledger, restart, index, member };
        match stop_member(view) {
            Ok(Stop::Due) => stopped = false,
            Ok(Stop::Done) => {}
            Ok(Stop::Draining(action)) => {
                stopped = false;
                changes.act(*action);
            }
            Ok(Stop::Pending(message)) => {
                stopped = false;
                changes.wait(&member.pod_uid, Code::Stopping, message);
            }
            Err(Turn::Abort(reason)) => {
                let reason = format!("{}: {reason}", member.node);
                return revert_config(context, restart, &reason, changes.waits);
            }
            Err(turn) => {
                ready = false;
                changes.merge(changes_of(view, turn));
            }
        }
    }
    let lifted = lift_limit_late(context, ledger, restart);
    let is_lifting = lifted != Changes::default();
    changes.merge(lifted);
    if !ready || is_lifting || !changes.ledger.is_empty() || context.has_changed(ledger) {
        return changes;
    }
    changes.merge(if stopped {
        freeze(context, ledger, restart)
    } else {
        prepare_and_stop(context, ledger, restart)
    });
    changes
}

/// True if certainly no node has taken its stop, so that all members can wait for their slots again.
fn none_was_stopped(context: &Context<'_>, restart: &Restart) -> bool {
    let waits = |member: &Member| {
        let manager = context.index.manager(&member.pod_uid);
        manager.is_ok_and(|manager| manager.sequence < member.stop_sequence)
    };
    restart.direction == Direction::Open
        && restart.ending.is_none()
        && active(restart).all(|(_, member)| waits(member))
}

/// Lets all members give their slots back in one write, since the restart is held before any stop.
fn give_all_back(context: &Context<'_>, restart: &Restart, why: &GiveBack) -> Changes {
    let mut changes = Changes::of_ledger(RestartChange::PrepareAgain);
    for (index, member) in active(restart) {
        changes.merge(give_back::begin(context, index, member, why));
    }
    changes
}

/// Progress of a member's stop.
enum Stop {
    Due,
    /// The stop was sent and is not done yet: the reason.
    Pending(String),
    /// The stop was sent, and this request shortens its drain.
    Draining(Box<Action>),
    Done,
}

/// The pod of a member, and its manager if that answers; `Err` is the member's turn while its pod is not
/// listed, or while the ledger still marks the pod or the manager as absent.
pub(crate) fn pod_and_manager<'t>(
    view: &TurnView<'t, '_>,
) -> Result<(&'t Pod, Result<&'t Manager, Blocker>), Turn> {
    let TurnView { context, member, .. } = *view;
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return Err(replaced::taken_over(view));
    };
    replaced::until_listed_again(member)?;
    let manager = context.index.manager(&member.pod_uid);
    if manager.is_ok() {
        until_heard_again(member)?;
    }
    Ok((pod, manager))
}

/// State of a member that is to be stopped. The first that applies counts, in this order.
enum Shown<'t> {
    Unreachable(Blocker),
    /// A request of another client is in force. In a restart that only goes forward, an engine that another
    /// client has started meanwhile is stopped like the others instead.
    Overtaken(&'t Manager),
    /// The manager has started the engine by itself, on a config that was replaced since.
    ResumedOnAnother,
    /// Stopped, or started by its manager on the new config.
    Done,
    /// Our stop has arrived, and is not done yet.
    Stopping(&'t Manager),
    /// Our stop has not arrived.
    NotStopped(&'t Manager),
}

fn shown<'t>(
    member: &Member,
    manager: Result<&'t Manager, Blocker>,
    is_forward: bool,
) -> Shown<'t> {
    let manager = match manager {
        Ok(manager) => manager,
        Err(blocker) => return Shown::Unreachable(blocker),
    };
    let was_started =
        manager.sequence < member.stop_sequence && manager.desired == Desired::Running;
    // We send no start before the checksums are frozen. Another client's start gets our sequence if
    // a request before it was refused.
    let has_our_start = manager.sequence >= member.start_sequence && !is_refused(manager);
    let is_as_expected = runs_as_expected(manager, member);
    let is_on_another = has_resumed(manager, member) && !is_as_expected;
    if has_our_start || is_overtaken(manager, member) && !(is_forward && was_started) {
        Shown::Overtaken(manager)
    } else if is_forward && is_on_another && manager.state == State::Running {
        Shown::ResumedOnAnother
    } else if manager.sequence < member.stop_sequence {
        Shown::NotStopped(manager)
    } else if manager.state == State::Stopped || is_as_expected {
        Shown::Done
    } else {
        Shown::Stopping(manager)
    }
}

/// Progress of a member's stop; `Err` while the member cannot be stopped.
fn stop_member(view: &TurnView<'_, '_>) -> Result<Stop, Turn> {
    let TurnView { context, ledger, restart, member, .. } = *view;
    let (pod, manager) = pod_and_manager(view)?;
    let late = |message: String| Err(Turn::Abort(format!("not stopped in time: {message}")));
    // If nodes are down that can only be started on the new config, the restart does not turn back.
    let is_forward = !replaced::may_turn_back(ledger);
    let is_late = !is_forward && is_over_time(context, member, 1);
    let ending = restart.ending.as_ref().filter(|_| !is_forward);
    match shown(member, manager, is_forward) {
        Shown::Unreachable(blocker) if is_late => late(blocker.message),
        Shown::Unreachable(blocker) if is_forward => {
            let may_run = may_run(context, member, pod);
            Err(without_manager(context, member, pod, blocker, may_run))
        }
        Shown::Unreachable(blocker) => Err(Turn::Wait(blocker)),
        Shown::Overtaken(manager) => Err(overtaken(manager, member)),
        Shown::ResumedOnAnother => Err(Turn::change(stop_once_more(member))),
        Shown::Done => Ok(Stop::Done),
        Shown::Stopping(manager) if is_late => late(describe_state(manager)),
        Shown::Stopping(manager) => Ok(pending(view, pod, manager)),
        Shown::NotStopped(_) if let Some(ending) = ending => {
            Err(Turn::Abort(ending.reason.clone()))
        }
        Shown::NotStopped(_) if is_late => late(why_not_stopped(context, ledger, restart)),
        Shown::NotStopped(manager) => {
            not_paused(context)?;
            if is_forward {
                may_be_stopped_again(context, pod, manager)?;
                know_process(view)?;
            } else {
                context.preflight(pod)?;
            }
            until_mounted(view, pod, manager, false)?;
            Ok(Stop::Due)
        }
    }
}

/// Reason why the nodes are not stopped: all are stopped together, so it is the same for each.
fn why_not_stopped(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> String {
    let waits = active(restart).find_map(|(_, member)| {
        let why = not_prepared(context, member)?;
        Some(format!("{} could not be stopped: {why}", member.node))
    });
    let prepares = || {
        let not_yet = (!restart.once.flush).then(|| prepare_once(context, ledger, restart).err());
        let waits = not_yet.flatten().into_iter().flat_map(|changes| changes.waits);
        waits.map(|wait| wait.message.into_owned()).next()
    };
    waits.or_else(prepares).unwrap_or_else(|| "the stop was not answered".into())
}

/// Reason why this member is not ready for its stop, if it is not.
fn not_prepared(context: &Context<'_>, member: &Member) -> Option<String> {
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return Some("its pod is gone".into());
    };
    let manager = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager,
        Err(blocker) => return Some(blocker.message),
    };
    if manager.sequence < member.stop_sequence
        && let Err(blocker) = context.preflight(pod)
    {
        return Some(blocker.message);
    }
    why_not_mounted(pod, manager)
}

/// New sequences for a member whose manager restarted the engine on a config that has been replaced since.
/// Without another stop the engine would keep that config, and a restart that only goes forward would wait
/// for it forever.
fn stop_once_more(member: &Member) -> Member {
    let mut again = member.clone();
    take_sequences_above(&mut again, member.start_sequence);
    again
}

/// Progress of a stop that was accepted while the engine is not stopped yet.
fn pending(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Stop {
    let TurnView { context, member, .. } = *view;
    let resume = Some(resume_on(member.expected.clone()));
    if let Some(action) = end_drain(context, pod, manager, member.stop_sequence, resume, false) {
        return Stop::Draining(Box::new(action));
    }
    let drain = describe(context, pod, manager);
    Stop::Pending(drain.unwrap_or_else(|| describe_state(manager)))
}

/// Writes the old process to the ledger if the engine was unreachable before.
fn know_process(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    let node = context.index.node(&member.node).filter(|_| member.ephemeral_id.is_none());
    let Some(node) = node else { return Ok(()) };
    let mut known = member.clone();
    known.ephemeral_id = Some(node.ephemeral_id.clone());
    Err(Turn::change(known))
}

/// Limits allocation and flushes, once for all nodes; then sends the stop to every node.
fn prepare_and_stop(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    if !restart.once.flush {
        return prepare_once(context, ledger, restart).unwrap_or_else(|blocked| *blocked);
    }
    let mut changes = Changes::default();
    for (_, member) in active(restart) {
        let Ok(manager) = context.index.manager(&member.pod_uid) else { continue };
        if manager.sequence < member.stop_sequence {
            changes.act(Action::Stop {
                uid: member.pod_uid.clone(),
                sequence: member.stop_sequence,
                drain: context.policy.drain.longest(),
                resume: Some(resume_on(member.expected.clone())),
                exit: false,
            });
        }
    }
    changes
}

/// Limits allocation and flushes; `Err` has the requests and the reasons to wait until both are done.
fn prepare_once(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Result<Changes, Box<Changes>> {
    let held = ledger.debts.allocation.iter().flat_map(|debt| &debt.holders);
    let held: NameSet<'_> = held.map(String::as_str).collect();
    // Allocation is held for several members, and the action is the same for each.
    let holder = active(restart).find(|(_, one)| held.contains(&*one.pod_uid));
    let holder = holder.map(|(index, member)| TurnView { context, ledger, restart, index, member });
    if let Some(view) = &holder
        && let Err(turn) = limit_allocation(view)
    {
        let (mut changes, blocker) = match turn {
            Turn::Act(changes, blocker) => (changes, blocker),
            Turn::Wait(blocker) => (Box::default(), Some(blocker)),
            Turn::Change(..) | Turn::GiveBack(_) | Turn::Abort(_) | Turn::Finish(..) => {
                (Box::default(), None)
            }
        };
        // If allocation was limited already by the superseded restart, a cluster that no longer
        // answers is not waited for.
        let is_needless =
            |blocker: &Blocker| restart.once.allocation && blocker.code == Code::EngineUnreachable;
        if let Some(blocker) = blocker.filter(|blocker| !is_needless(blocker)) {
            changes.wait_all(blocker.code, blocker.message);
            return Err(changes);
        }
    }
    if is_to_be_flushed(context, WHOLE_CLUSTER) {
        let mut changes = Changes::action(Action::Flush { node: WHOLE_CLUSTER.into() });
        changes.wait_all(Code::Preparing, "flushing");
        return Err(Box::new(changes));
    }
    Ok(Changes::of_ledger(RestartChange::PrepareOnce))
}

/// Freezes, in one write, the checksum that each node is started with, once all nodes are stopped.
fn freeze(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let mut changes = Changes::default();
    let mut mounted = true;
    for (index, member) in active(restart) {
        let view = &TurnView { context, ledger, restart, index, member };
        let pod = context.index.pod(&member.pod_uid);
        let (Some(pod), Ok(manager)) = (pod, context.index.manager(&member.pod_uid)) else {
            return changes;
        };
        if let Err(turn) = until_mounted(view, pod, manager, true) {
            if is_over_time(context, member, 2) && replaced::may_turn_back(ledger) {
                let reason = "the new config was not mounted in every pod in time";
                return revert_config(context, restart, reason, changes.waits);
            }
            changes.merge(changes_of(view, turn));
        }
        mounted &= manager.mounted == member.expected;
    }
    if mounted && changes.ledger.is_empty() {
        changes.change(RestartChange::Freeze(context.snapshot.now));
    }
    changes
}

/// The turn of a member whose manager is unreachable, in a restart that only goes forward. Once its phase is
/// over, the member has one more phase, from the first plan that finds the manager unreachable; then its
/// start is a debt. `may_run`: the engine may run on another config than the others are going to, and the
/// member waits for a person instead.
pub(crate) fn without_manager(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
    unknown: Blocker,
    may_run: bool,
) -> Turn {
    if !is_over_time(context, member, 1) {
        return Turn::Wait(unknown);
    }
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    let message = unknown.message;
    match member.silent_since {
        None => Turn::change(Member { silent_since: Some(now), ..member.clone() }),
        Some(since) if now.since(since) >= phase && !may_run => {
            owe_start_of_gone(context, member, &format!("no answer in time: {message}"))
        }
        Some(_) => {
            let mut message = format!("{message}{}", if_gone_for_good(context, pod));
            if may_run {
                message = format!("{message}; {}", how_left_out(context, pod));
            }
            Turn::Wait(Blocker { code: unknown.code, message })
        }
    }
}

/// The command with which a person leaves the node of this pod out, for the end of a message.
fn how_left_out(context: &Context<'_>, pod: &Pod) -> String {
    let (namespace, _) = namespace_and_name(&context.snapshot.cluster.name);
    format!(
        "to go on without it, although it may run on another config than the others: \
         `kubectl -n {namespace} annotate pod {} {}-`",
        pod.name,
        annotation::PHASE
    )
}

/// Ends a member that a person leaves out: its start is a debt. Only for a member whose manager has not
/// answered in time, in a restart that only goes forward.
pub(crate) fn left_out(view: &TurnView<'_, '_>) -> Option<Turn> {
    let TurnView { context, restart, member, .. } = *view;
    let is_silent = member.step == MemberStep::Restarting
        && member.silent_since.is_some()
        && context.index.manager(&member.pod_uid).is_err();
    let reason = "its phase annotation was removed while its manager did not answer";
    (is_silent && restart.direction == Direction::Forward)
        .then(|| owe_start_of_gone(context, member, reason))
}

/// Passes once the ledger no longer marks a manager as unreachable that answers again.
pub(crate) fn until_heard_again(member: &Member) -> Result<(), Turn> {
    match member.silent_since {
        Some(_) => Err(Turn::change(Member { silent_since: None, ..member.clone() })),
        None => Ok(()),
    }
}

/// True if the engine of an unreachable manager may still run. False only if the cluster answers and does not
/// list the node, or if no cluster answers and the pod is being deleted.
pub(crate) fn may_run(context: &Context<'_>, member: &Member, pod: &Pod) -> bool {
    let is_listed = context.index.node(&member.node).is_some();
    is_listed || context.index.engine().is_err() && !pod.terminating
}
