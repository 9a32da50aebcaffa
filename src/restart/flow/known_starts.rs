//! The starts that can be sent while the apiserver does not answer: all that they say is in the
//! ledger that was written last, so a later leader sends the same ones.

use super::answers::was_refused;
use super::debts;
use super::member::start::start_of;
use super::member::update::step_of;
use crate::{Action, Ledger, Manager, Member, Step, Strategy, UpdateStep};
use stayput_api::State;

/// Starts of engines that are stopped and whose start, with its sequence, is in this ledger.
/// `manager` reads a manager's status by the uid of its pod; none if it is not known.
pub fn starts_in_ledger(ledger: &Ledger, manager: impl Fn(&str) -> Option<Manager>) -> Vec<Action> {
    let may_start = ledger.restart.as_ref().is_some_and(|restart| {
        restart.request.strategy != Strategy::Coordinated || restart.frozen.is_some()
    });
    let members = ledger.members().filter(|_| may_start);
    let planned = members.filter_map(|member| {
        let manager = manager(&member.pod_uid)?;
        planned_start(member, &manager)
    });
    let owed = ledger.debts.start.iter().filter_map(|debt| {
        let manager = manager(&debt.pod_uid)?;
        let is_due = manager.state == State::Stopped && manager.sequence < debt.sequence;
        is_due.then(|| debts::start_of(debt))
    });
    planned.chain(owed).collect()
}

/// The start of a member whose stop was the last request that its manager has decided on.
fn planned_start(member: &Member, manager: &Manager) -> Option<Action> {
    // A pod that is to change is changed first, for which the apiserver is needed.
    let is_due = member.step == Step::Restarting
        && step_of(member) <= UpdateStep::Restart
        && manager.state == State::Stopped
        && manager.sequence == member.stop_sequence
        && !was_refused(manager, member.stop_sequence)
        && manager.mounted == member.expected;
    is_due.then(|| start_of(member))
}
