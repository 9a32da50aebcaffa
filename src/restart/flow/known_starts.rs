//! The starts that can be sent while the apiserver or the engine is unreachable: all their fields are in the
//! ledger that was written last, so a later leader sends the same ones.

use super::answers::{is_opposite, is_overtaken, was_refused};
use super::debts;
use super::member::compensation::{compensation_for, rolls_back, start_of_compensation};
use super::member::start::start_of;
use super::member::update::step_of;
use crate::{Action, Ledger, Manager, Member, MemberStep, Strategy, UpdateStep};
use stayput_api::{RequestKind, State};

/// Starts of engines that are stopped and whose start, with its sequence, is in this ledger. `rollback`:
/// nodes are brought back on their last good config. `manager` reads a manager's status, if known, by the uid
/// of its pod. `is_to_be_stopped`: true if a person wants the node of this pod stopped, which the ledger need
/// not have yet.
pub fn starts_in_ledger(
    ledger: &Ledger,
    rollback: bool,
    manager: impl Fn(&str) -> Option<Manager>,
    is_to_be_stopped: impl Fn(&str) -> bool,
) -> Vec<Action> {
    let planned = startable(ledger).filter_map(|member| {
        let manager = manager(&member.pod_uid)?;
        planned_start(member, &manager)
    });
    let rollback = rolls_back(rollback, ledger);
    let back = ledger.members().filter_map(|member| {
        let manager = manager(&member.pod_uid)?;
        start_back(member, &manager, rollback)
    });
    // A pod that is to be rolled back is rolled back first, which needs the apiserver.
    let owed = ledger.debts.start.iter().filter(|debt| {
        debt.update.is_none()
            && !ledger.kept_stopped.iter().any(|kept| kept.pod_uid == debt.pod_uid)
            && !is_to_be_stopped(&debt.pod_uid)
    });
    let owed = owed.filter_map(|debt| {
        let manager = manager(&debt.pod_uid)?;
        let is_due = manager.state == State::Stopped
            && manager.sequence < debt.sequence
            && debts::is_due_on(ledger, debt, &manager);
        is_due.then(|| debts::start_of(debt))
    });
    planned.chain(back).chain(owed).collect()
}

/// Uids of the pods whose managers have decided on a stop of this ledger, and whose start comes next: that
/// needs no answer of the engine.
pub fn awaited_starts<'a>(
    ledger: &'a Ledger,
    manager: impl Fn(&str) -> Option<Manager> + 'a,
) -> impl Iterator<Item = &'a str> {
    let is_awaited = move |member: &&Member| {
        manager(&member.pod_uid).is_some_and(|is| is_stop_last(member, &is))
    };
    startable(ledger).filter(is_awaited).map(|member| member.pod_uid.as_str())
}

/// True if a start of this ledger can be sent now, because the stop before it is done.
pub fn start_is_due(ledger: &Ledger, manager: impl Fn(&str) -> Option<Manager>) -> bool {
    startable(ledger).any(|member| {
        manager(&member.pod_uid).is_some_and(|is| planned_start(member, &is).is_some())
    })
}

/// The members that are started as soon as they are stopped.
fn startable(ledger: &Ledger) -> impl Iterator<Item = &Member> {
    let may_start = ledger.restart.as_ref().is_some_and(|restart| {
        restart.request.strategy != Strategy::Coordinated || restart.frozen.is_some()
    });
    ledger.members().filter(move |_| may_start)
}

/// The start of a stopped member, if its stop was the last request that its manager has decided on and its
/// config is mounted.
fn planned_start(member: &Member, manager: &Manager) -> Option<Action> {
    let is_due = is_stop_last(member, manager)
        && manager.state == State::Stopped
        && manager.mounted == member.expected;
    is_due.then(|| start_of(member))
}

/// The start of a member that is brought back, if its compensation would be the same now: another config, or
/// a stop before it, is written to the ledger first. The engine must be down, and the last request that its
/// manager has decided on must be ours.
fn start_back(member: &Member, manager: &Manager, rollback: bool) -> Option<Action> {
    let back = member.compensation.as_ref().filter(|_| member.step == MemberStep::Aborting)?;
    let is_down = matches!(manager.state, State::Stopped | State::Failed | State::Backoff);
    let may_start = is_down && step_of(member) <= UpdateStep::Restart;
    let is_due = may_start
        && match back.stop_sequence {
            Some(stop) => {
                let is_ours = !is_opposite(manager, stop, RequestKind::Stop);
                manager.sequence == stop && is_ours && !was_refused(manager, stop)
            }
            None => {
                let ours = [member.stop_sequence, member.start_sequence];
                let now = compensation_for(member, Some(manager), rollback, false);
                ours.contains(&manager.sequence)
                    && !is_overtaken(manager, member)
                    && (now.stop_sequence, now.config) == (None, back.config)
            }
        };
    is_due.then(|| start_of_compensation(member, back))
}

/// True if the stop of this member was the last request that its manager has decided on. False for a pod that
/// must be changed before the start, which needs the apiserver.
fn is_stop_last(member: &Member, manager: &Manager) -> bool {
    member.step == MemberStep::Restarting
        && step_of(member) <= UpdateStep::Restart
        && manager.sequence == member.stop_sequence
        && !was_refused(manager, member.stop_sequence)
}
