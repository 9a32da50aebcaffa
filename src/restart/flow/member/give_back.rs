//! A member that holds a slot and may not be stopped now gives the slot back: what we have changed
//! for its stop is undone, because that may delay what it waits for, and it waits for its turn again.
//!
//! A stop may have been sent before the rules changed. So its start is sent first: from then on the
//! manager refuses the stop. If the stop was quicker, the member is restarted as planned, unless its start
//! was taken before its pod could be changed.
//!
//! A member also gives its slot back if its manager restarted the engine on another config than ours, because
//! we or the apiserver were away: the manager then refuses our start, and the next turn stops the engine once
//! more. So does a member whose pod was replaced by one that runs on an old config.

use crate::changes::{Changes, Check, refuse};
use crate::flow::answers::{is_ending, is_overtaken, overtaken, runs_on_another, was_refused};
use crate::flow::engine::record::{prepares, records};
use crate::flow::engine::{clean_up, is_tight, is_to_be_flushed, lift_limit, settle};
use crate::flow::member::start::{not_mounted, send_start};
use crate::flow::member::update::frozen_update::planned_update_fits;
use crate::flow::member::update::is_carried_out;
use crate::flow::observed::{describe_zone, expected_now, has_joined, is_over_time};
use crate::flow::target::scheduled;
use crate::flow::turn::{GiveBack, Turn, TurnView, wait};
use crate::{
    Blocker, Code, Context, Ledger, Manager, Member, MemberStep, Pod, Reason, Restart, Time,
};
use stayput_api::{Desired, State};

/// Initial backoff between a slot that was given back and the next slot, in milliseconds. It doubles each
/// time, so that settings are not changed all the time in a cluster that never settles.
const FIRST_PAUSE: u64 = 10_000;
/// Maximum backoff between a slot that was given back and the next slot, in milliseconds.
const LONGEST_PAUSE: u64 = 300_000;

/// Writes to the ledger that a member gives its slot back.
pub(crate) fn begin(
    context: &Context<'_>,
    index: usize,
    member: &Member,
    why: &GiveBack,
) -> Changes {
    let mut giving = member.clone();
    giving.step = MemberStep::GivingBack;
    giving.since = context.snapshot.now;
    giving.given_back += u32::from(why.by_rule);
    let mut changes = Changes::default();
    let message = format!("{} is not stopped now, and waits again: {}", member.node, why.reason);
    changes.event(Some(&member.pod_uid), Reason::SlotGivenBack, message);
    changes.set_member(index, giving);
    changes
}

/// The next step of a member that gives its slot back.
pub(crate) fn give_back(view: &TurnView<'_, '_>) -> Turn {
    let TurnView { context, member, .. } = *view;
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        if let Some(successor) = context.index.successor(member) {
            return wait_again(view, successor);
        }
        let gone = Blocker { code: Code::PodGone, message: "the pod is gone".into() };
        let lifted = lift_limit(view);
        return late(view, lifted.err().unwrap_or(Turn::Wait(gone)));
    };
    match undo(view, pod) {
        Ok(()) => wait_again(view, pod),
        Err(turn) => late(view, turn),
    }
}

/// Aborts a member whose slot is not given back within a phase, so that it is brought back instead; otherwise
/// keeps its turn. Changes that cannot be undone then either are debts.
fn late(view: &TurnView<'_, '_>, turn: Turn) -> Turn {
    let TurnView { context, member, .. } = *view;
    let why = match &turn {
        Turn::Wait(blocker) | Turn::Act(_, Some(blocker)) => blocker.message.as_str(),
        Turn::Act(_, None) => "its manager does not accept our start",
        Turn::Change(..) | Turn::GiveBack(_) | Turn::Abort(_) | Turn::Finish(..) => return turn,
    };
    if is_over_time(context, member, 1) {
        Turn::Abort(format!("its slot could not be given back: {why}"))
    } else {
        turn
    }
}

/// State of a member that gives its slot back. The first that applies counts, in this order.
enum Shown {
    /// A request of another client is in force.
    Overtaken,
    /// Neither our stop nor our start has arrived, and the engine is ending.
    Ending,
    /// Neither our stop nor our start has arrived: the stop still may.
    NotDecided,
    /// The manager has started the engine by itself after our stop, on another config.
    ResumedOnAnother,
    /// Our stop was quicker than our start.
    Stopped,
    /// The manager took our start before the pod was changed: the engine had ended by itself, or the stop was
    /// a little quicker than the start. Only another turn can change the pod now.
    StartedTooEarly,
    /// The engine was not stopped, and its manager refuses our stop from now on.
    Kept,
}

fn shown(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Result<Shown, Blocker> {
    let TurnView { member, .. } = *view;
    let is_start_taken =
        manager.sequence >= member.start_sequence && !was_refused(manager, member.start_sequence);
    Ok(if is_overtaken(manager, member) {
        Shown::Overtaken
    } else if manager.sequence < member.stop_sequence {
        let ends = is_ending(manager.state) || manager.state == State::Stuck;
        if ends { Shown::Ending } else { Shown::NotDecided }
    } else if runs_on_another(manager, member) {
        Shown::ResumedOnAnother
    } else if !was_stopped(view, manager)? {
        Shown::Kept
    } else if is_start_taken && !is_carried_out(member, pod) {
        Shown::StartedTooEarly
    } else {
        Shown::Stopped
    })
}

/// Passes once the stop can no longer arrive, and nothing of ours is left on the engine.
/// Allocation comes first, and does not wait for the manager.
fn undo(view: &TurnView<'_, '_>, pod: &Pod) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    lift_limit(view)?;
    let manager = context.index.manager(&member.pod_uid)?;
    let until_listed = |what: &str| -> Result<(), Turn> {
        if has_joined(context, member)? {
            return Ok(());
        }
        Err(wait(Code::GivingBack, format!("{what}; the cluster does not list it yet")))
    };
    let all = ledger.restart.as_ref().is_some_and(Restart::is_coordinated);
    match shown(view, pod, manager)? {
        Shown::Overtaken => Err(overtaken(manager, member)),
        Shown::Ending => {
            let message = format!("its engine is {}", manager.state.as_str());
            Err(wait(Code::GivingBack, message))
        }
        Shown::NotDecided => Err(send_start(member)),
        Shown::ResumedOnAnother => {
            until_listed("its manager has started its engine")?;
            Err(send_start(member))
        }
        Shown::Stopped | Shown::StartedTooEarly if all => {
            Err(Turn::Abort("it was stopped, and the others were not".into()))
        }
        Shown::Stopped => {
            Err(Turn::change(Member { step: MemberStep::Restarting, ..member.clone() }))
        }
        Shown::StartedTooEarly => {
            until_listed("its engine was started again")?;
            clean_up_after_saved(view, manager)
        }
        Shown::Kept => clean_up_after_saved(view, manager),
    }
}

/// Passes once the manager has saved our last request, and nothing of ours is left on the engine.
fn clean_up_after_saved(view: &TurnView<'_, '_>, manager: &Manager) -> Result<(), Turn> {
    if !manager.durable || manager.desired != Desired::Running {
        return Err(wait(Code::NotDurable, "its manager has not saved our last request"));
    }
    clean_up(view)
}

/// True if our stop took effect before the manager decided on our start.
fn was_stopped(view: &TurnView<'_, '_>, manager: &Manager) -> Result<bool, Blocker> {
    let TurnView { context, member, .. } = *view;
    if manager.sequence < member.start_sequence {
        return Ok(true);
    }
    if was_refused(manager, member.start_sequence) {
        // A refused start has changed nothing. An engine that is down may have ended by itself.
        return Ok(manager.desired == Desired::Stopped);
    }
    // If the node was not listed when it took its slot, any process is a new one.
    let had_process = member.ephemeral_id.is_some();
    Ok(had_process && (manager.state != State::Running || has_joined(context, member)?))
}

/// Lets the member wait for its turn again, and releases its debts.
fn wait_again(view: &TurnView<'_, '_>, pod: &Pod) -> Turn {
    let TurnView { context, ledger, member, .. } = *view;
    let again = scheduled(pod, context.snapshot.now);
    let again = Member { given_back: member.given_back, ..again };
    let ledger = settle(context, ledger, &member.pod_uid);
    Turn::Change(Box::new(again), Box::new(Changes { ledger, ..Changes::default() }))
}

/// Passes unless a slot was given back a short while ago: the backoff must be over.
pub(crate) fn not_just_given_back(context: &Context<'_>, restart: &Restart) -> Result<(), Blocker> {
    let mut before = context.snapshot.ledger.members();
    if let Some(giving) = before.find(|member| member.step == MemberStep::GivingBack) {
        let message = format!("{} has just given its slot back", giving.node);
        return Err(Blocker { code: Code::GivingBack, message });
    }
    let waits = restart.members.iter().filter(|member| member.step == MemberStep::Scheduled);
    let gave = waits.filter(|member| member.given_back > 0);
    match gave.map(|member| (next_slot(member), &member.node)).max() {
        Some((at, node)) if context.snapshot.now < at => Err(Blocker {
            code: Code::GivingBack,
            message: format!(
                "{node} has given its slot back because the cluster changed: no slot before {at}"
            ),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Earliest time of the next slot after this member gave its slot back.
fn next_slot(member: &Member) -> Time {
    let doubled = FIRST_PAUSE.saturating_mul(1 << (member.given_back - 1).min(16));
    member.since.plus(doubled.min(LONGEST_PAUSE))
}

/// Passes if a member may be stopped. For a node that is restarted with its zone, all nodes of the
/// zone must be ready to be stopped. Once one of them is stopped this is not checked again, and
/// each of the others is stopped as soon as it can be.
pub(crate) fn may_stop(view: &TurnView<'_, '_>, pod: &Pod) -> Check {
    let TurnView { context, ledger, restart, .. } = *view;
    if restart.request.goes_as_a_whole() {
        context.zone_may_stop(|| zone_may_stop(context, ledger, restart))?;
    }
    may_stop_alone(context, ledger, restart, pod)
}

/// Reason why a member must give its slot back: a rule no longer allows its stop, or in a zone that of any of
/// its nodes; or the node hangs. Copies that are only moving are ready soon, also while allocation is
/// limited: they are waited for until `is_late`.
pub(crate) fn why_not(view: &TurnView<'_, '_>, pod: &Pod, is_late: bool) -> Option<Blocker> {
    let TurnView { context, ledger, restart, .. } = *view;
    let evaluation = context.stop_evaluation(ledger).ok()?;
    let says_no = |pod: &Pod| {
        if let Err(blocker) = planned_update_fits(context, restart, pod) {
            return Some(blocker);
        }
        let blocker = evaluation.check_before_stop(pod, &restart.request).err()?;
        let by_rule = blocker.code.passes_by_itself()
            || blocker.code == Code::UnreplicatedIndex
            || evaluation.is_silent(&pod.uid);
        let waits = !is_late && evaluation.is_only_moving(&blocker);
        (by_rule && !waits).then_some(blocker)
    };
    if restart.request.goes_as_a_whole() && !has_begun(context, restart) {
        let members = restart.members.iter().filter(|member| member.step == MemberStep::Restarting);
        return members.filter_map(|member| context.index.pod(&member.pod_uid)).find_map(says_no);
    }
    says_no(pod)
}

fn may_stop_alone(context: &Context<'_>, ledger: &Ledger, restart: &Restart, pod: &Pod) -> Check {
    context.stop_evaluation(ledger)?.check_before_stop(pod, &restart.request)
}

fn zone_may_stop(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Check {
    if has_begun(context, restart) {
        return Ok(());
    }
    for member in restart.members.iter().filter(|member| member.step == MemberStep::Restarting) {
        until_ready_to_stop(context, ledger, restart, member).map_err(|blocker| Blocker {
            code: blocker.code,
            message: format!(
                "{} is stopped as a whole, and {} cannot be yet: {}",
                describe_zone(restart),
                member.node,
                blocker.message
            ),
        })?;
    }
    Ok(())
}

/// True if a node of the zone has taken its stop.
fn has_begun(context: &Context<'_>, restart: &Restart) -> bool {
    restart.members.iter().any(|member| {
        let manager = context.index.manager(&member.pod_uid);
        member.stop_sequence > 0
            && manager.is_ok_and(|manager| manager.sequence >= member.stop_sequence)
    })
}

/// Passes if everything for the stop of a member is ready.
fn until_ready_to_stop(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Check {
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return refuse(Code::PodGone, "its pod is gone, and the one in its place is not back");
    };
    let manager = context.preflight(pod)?;
    let expected = expected_now(pod, manager)?;
    if expected != member.expected || manager.mounted != expected {
        return refuse(Code::ConfigNotMounted, not_mounted(pod));
    }
    let debts = &ledger.debts;
    if let Some(debt) = debts.records.iter().find(|debt| debt.pod_uid == member.pod_uid) {
        let record =
            records(context)?.iter().find(|record| debt.is_about(record, context.index.cluster()));
        if !record.is_some_and(|record| record.complete) {
            return refuse(Code::Preparing, prepares(record));
        }
    }
    let is_held = |uid| debts.allocation.as_ref().is_some_and(|debt| debt.holders.contains(uid));
    if is_held(&member.pod_uid) {
        let allocation = context.index.allocation()?;
        if allocation.marker.is_none() || !is_tight(allocation) {
            return refuse(Code::Preparing, "allocation is not limited to primaries");
        }
    }
    if is_to_be_flushed(context, &member.node) {
        return refuse(Code::Preparing, "it is being flushed");
    }
    may_stop_alone(context, ledger, restart, pod)
}
