//! The way back, for everybody.

use crate::flow::abort::outcome_of;
use crate::planner::Planner;
use crate::{Direction, Manager, Outcome, Reason, Restart};

impl Planner<'_> {
    /// Everybody back: on the last good config where there is one.
    pub(super) fn turn_back(&mut self, restart: &Restart, reason: &str) {
        let mut outcome = Outcome::RolledBack;
        for (index, member) in Self::active(restart) {
            let manager: Option<&Manager> = self.view.manager(&member.pod_uid).ok();
            let compensation = self.way_back(member, manager, true);
            let own = outcome_of(compensation.config);
            if own != Outcome::RolledBack {
                outcome = own;
            }
            self.set_back(index, member, compensation, reason);
        }
        if let Some(restart) = &mut self.ledger.to_mut().restart {
            restart.direction = Direction::Back;
        }
        self.tell(None, Reason::RestartAborted, format!("Turning every node back: {reason}"));
        self.end_with(outcome, reason);
    }
}
