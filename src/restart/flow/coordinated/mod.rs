//! All nodes stopped, then all started. One direction for everybody: until the first has joined it
//! can turn back; after that it goes forward only, so that the cluster is never left split.

mod back;
mod replaced;
mod start;
mod stop;
mod stranded;
mod supersede;

use crate::planner::Planner;
use crate::rules::{StopImpact, preflight};
use crate::{Blocker, Direction, Member, Restart, Step};

/// The one flush a coordinated restart has.
pub(crate) const WHOLE_CLUSTER: &str = "*";

impl Planner<'_> {
    /// The next step of a coordinated restart.
    pub(in crate::flow) fn coordinate(&mut self) {
        let Some(restart) = self.restart() else { return };
        if Self::active(&restart).next().is_none() {
            return;
        }
        let turning = restart.members.iter().any(|member| member.step == Step::Aborting);
        if turning {
            self.advance_members();
        } else if restart.members.iter().any(|member| member.step == Step::Scheduled) {
            self.begin_all(&restart);
        } else if restart.frozen.is_some() {
            self.start_all(&restart);
        } else {
            self.stop_all(&restart);
        }
    }

    /// Members that still take part.
    pub(super) fn active(restart: &Restart) -> impl Iterator<Item = (usize, &Member)> {
        let members = restart.members.iter().enumerate();
        members.filter(|(_, member)| member.step != Step::Finished)
    }

    /// Whether everybody can still be turned back.
    pub(super) fn may_turn_back(&self) -> bool {
        self.ledger.restart.as_ref().is_some_and(|one| one.direction == Direction::Open)
    }

    /// Gives every member its slot, all in one write: or nobody, if something is in the way of one.
    fn begin_all(&mut self, restart: &Restart) {
        if restart.ending.is_some() {
            return;
        }
        let blocked = self.may_begin(restart).err().or_else(|| {
            Self::active(restart).find_map(|(_, member)| {
                let pod = self.view.pod(&member.pod_uid)?;
                let refusal = preflight(pod).err()?;
                Some(Blocker { message: format!("{}: {}", pod.node, refusal.message), ..refusal })
            })
        });
        if let Some(refusal) = blocked {
            self.wait_all(refusal.code, refusal.message.clone());
            for (_, member) in Self::active(restart) {
                self.refused(&member.pod_uid, refusal.clone());
            }
            return;
        }
        if !self.has_finalizer() {
            return;
        }
        let mut all_there = true;
        for (index, member) in Self::active(restart) {
            if let Some(turn) = self.still_there(member) {
                all_there = false;
                self.apply(index, member, turn);
            }
        }
        if !all_there {
            return;
        }
        for (index, member) in Self::active(restart) {
            let Some(pod) = self.view.pod(&member.pod_uid) else { continue };
            let begun = self.view.manager(&member.pod_uid).and_then(|manager| {
                self.begin(restart, index, pod, manager, &StopImpact::default())
            });
            if let Err(refusal) = begun {
                // Some entries may be written already in the working copy: none of it is used.
                self.ledger = std::borrow::Cow::Borrowed(&self.snapshot.ledger);
                self.refused(&member.pod_uid, refusal);
                return;
            }
        }
    }
}
