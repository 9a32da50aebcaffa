//! How a restart flows: what is taken up, who goes next, each node's way there and back.

mod abort;
mod allocation;
mod annotations;
mod begin;
mod cancel;
mod coordinated;
mod debts;
mod doubts;
mod drift;
mod finish;
mod intake;
mod kept_stopped;
mod member;
mod mounted;
mod next;
mod people;
mod progress;
mod record;
mod start;
mod stop;
mod voting;
mod zone;

pub(super) use annotations::{phase_of, shown_of};
pub(super) use drift::drifts;

use super::planner::Planner;
use super::{Blocker, Code, Ending, Member, Strategy};

/// What one member's turn comes to.
enum Move {
    /// Nothing yet.
    Wait(Blocker),
    /// Requests or patches were added to the plan.
    Acted,
    /// Its entry in the ledger changes.
    Change(Box<Member>),
    /// It must be brought back; the sentence says why.
    Abort(String),
    /// It is over for this member.
    Finish(Ending),
}

fn wait(code: Code, message: impl Into<String>) -> Move {
    Move::Wait(Blocker { code, message: message.into() })
}

impl Planner<'_> {
    /// Everything, in the order in which one thing depends on another.
    pub(super) fn decide(&mut self) {
        self.take_up();
        self.doubt_policy();
        self.listen_to_people();
        self.pay_debts();
        match self.ledger.restart.as_ref().map(|restart| restart.request.strategy) {
            Some(Strategy::Immediate | Strategy::Rolling) => {
                self.advance_members();
                self.choose_next();
            }
            Some(Strategy::Coordinated) => self.coordinate(),
            None => {}
        }
        self.keep_fences();
        self.finish_restart();
        self.tell_progress();
        self.show_phases();
        self.let_go();
    }
}
