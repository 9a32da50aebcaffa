//! A person replaces the frozen configs of a restart that has gone forward and cannot come to its
//! end: its nodes, those that are back and those that are down, become nodes of a new one.

use std::collections::BTreeSet;

use crate::flow::intake::scheduled;
use crate::flow::member::{GAP, is_overtaken};
use crate::lookup::{Lookup, Names};
use crate::planner::Planner;
use crate::rules::preflight;
use crate::{
    AllocationDebt, Blocker, Code, Direction, Ending, Manager, Member, Once, Outcome, Pod, Reason,
    Request, Restart, Step, Strategy,
};
use stayput_api::State;

/// What keeps a request from taking a restart's place.
pub(in crate::flow) struct Obstacle {
    /// Id of the request.
    pub(super) asked: String,
    pub(in crate::flow) message: String,
}

/// What a new restart takes over in one write.
struct Heritage {
    members: Vec<Member>,
    allocation: Option<AllocationDebt>,
}

impl Planner<'_> {
    /// Lets the coordinated request that waits take the place of a restart that has gone forward
    /// and cannot be ended. In one write, so that no node is nobody's at any moment.
    pub(in crate::flow) fn supersede(&mut self) {
        let Some(restart) = self.restart() else { return };
        let Some(request) = self.ledger.queued.clone().filter(is_coordinated) else { return };
        if !self.has_stranded(&restart) {
            return;
        }
        // Why not is told with the node that waits.
        let Ok(heritage) = self.heritage(&restart, &request) else { return };
        if !self.has_finalizer() {
            return;
        }
        let back = Self::active(&restart).filter(|(_, member)| self.is_well(member)).count();
        let reason = format!(
            "restart {} took its place: not every node could be brought to the config it was to run",
            request.id
        );
        self.close(&restart, Ending { outcome: Outcome::Superseded, reason }, back);
        self.tell(
            None,
            Reason::RestartStarted,
            format!(
                "Starting coordinated restart {} of {} nodes in the place of {}: all of them are \
                 stopped and started on what their sources have now",
                request.id,
                heritage.members.len(),
                restart.request.id
            ),
        );
        for member in &heritage.members {
            self.tell_begun(member, "");
        }
        let ledger = self.ledger.to_mut();
        ledger.queued = None;
        // The mark beside the setting bears the id of whoever set it; so does the debt.
        let tightened = restart.once.allocation && ledger.debts.allocation.is_some();
        ledger.debts.allocation = heritage.allocation;
        ledger.restart = Some(Restart {
            request,
            started: self.snapshot.now,
            began: Some(self.snapshot.now),
            direction: Direction::Forward,
            ending: None,
            once: Once { allocation: tightened, flush: false },
            frozen: None,
            members: heritage.members,
        });
    }

    /// The coordinated request that waits, and why it cannot take the place of a restart in which a
    /// member is stranded.
    pub(in crate::flow) fn why_not_superseded(&self, restart: &Restart) -> Option<Obstacle> {
        let queued = self.ledger.queued.as_ref().filter(|queued| is_coordinated(queued))?;
        if !self.has_stranded(restart) {
            return None;
        }
        let message = self.heritage(restart, queued).err()?;
        Some(Obstacle { asked: queued.id.clone(), message })
    }

    /// What the new restart begins with, or why it cannot.
    fn heritage(&self, restart: &Restart, request: &Request) -> Result<Heritage, String> {
        // An engine without a majority may be the very reason: only its roles and zones are needed.
        if let Err(refusal) = self.view.engine()
            && (request.target.is_by_engine() || refusal.code != Code::EngineUnreachable)
        {
            return Err(refusal.message);
        }
        let mut members = self.members(&request.target)?;
        let uids: Vec<String> = members.iter().map(|member| member.pod_uid.clone()).collect();
        let meant: Names<'_> = uids.iter().map(String::as_str).collect();
        for (_, member) in Self::active(restart) {
            let Some(pod) = self.view.pod(&member.pod_uid).filter(|pod| !pod.terminating) else {
                return Err(format!("the pod {} is gone or being deleted", member.pod));
            };
            let is_meant = meant.contains(&*member.pod_uid);
            if !is_meant && !self.is_to_be_stopped(pod) {
                return Err(format!(
                    "it does not mean {}, which is part of {} and would be left on another config \
                     than the others",
                    member.node, restart.request.id
                ));
            }
            if !is_meant {
                // Down because of us: it is kept stopped only once that is written down.
                members.push(scheduled(pod, self.snapshot.now));
            }
        }
        members.sort_by(|one, other| one.node.cmp(&other.node));
        let next = Restart {
            request: request.clone(),
            started: self.snapshot.now,
            began: None,
            direction: Direction::Forward,
            ending: None,
            once: Once::default(),
            frozen: None,
            members: Vec::new(),
        };
        self.may_begin(&next).map_err(|refusal| refusal.message)?;
        let active = Self::active(restart).map(|(_, one)| (one.pod_uid.as_str(), one));
        let active: Lookup<'_, &Member> = active.collect();
        // What a person has stopped since is theirs: it is down, and on no other config.
        members.retain(|member| {
            active.contains_key(&*member.pod_uid) || !self.is_kept_down(&member.pod_uid)
        });
        for member in &mut members {
            let begun = self.taken_over(member, active.get(&*member.pod_uid).copied());
            *member = begun.map_err(|refusal| format!("{}: {}", member.node, refusal.message))?;
        }
        let allocation =
            self.inherited_allocation(request, &members).map_err(|refusal| refusal.message)?;
        Ok(Heritage { members, allocation })
    }

    /// A member as it begins: with sequences above all that may still be on its way to its manager.
    fn taken_over(&self, member: &Member, before: Option<&Member>) -> Result<Member, Blocker> {
        let manager = self.view.manager(&member.pod_uid)?;
        let pod = self.view.pod(&member.pod_uid);
        let pod = pod.filter(|_| before.is_none_or(|before| !is_overtaken(manager, before)));
        let Some(pod) = pod else {
            let message = "somebody else gave its manager a request, which is settled first";
            return Err(Blocker { code: Code::Interfered, message: message.into() });
        };
        match before {
            Some(_) => may_be_stopped_again(pod, manager)?,
            None => preflight(pod).map(|_| ())?,
        }
        let node = self.view.node(&member.node);
        let above = before.map_or(0, |before| before.start_sequence).max(manager.sequence);
        let mut begun = member.clone();
        begun.step = Step::Restarting;
        begun.stop_sequence = above + GAP;
        begun.start_sequence = begun.stop_sequence + GAP;
        begun.expected = Self::expected_now(pod, manager)?;
        begun.ephemeral_id = node.map(|node| node.ephemeral_id.clone());
        let known = before.and_then(|before| before.node_id.clone());
        begun.node_id = node.map(|node| node.id.clone()).or(known);
        begun.master_eligible = node.map_or_else(
            || before.is_some_and(|before| before.master_eligible),
            crate::Node::is_master_eligible,
        );
        Ok(begun)
    }

    /// Whether somebody but us keeps the engine of this pod stopped.
    fn is_kept_down(&self, uid: &str) -> bool {
        let refusal = self.view.pod(uid).and_then(|pod| preflight(pod).err());
        refusal.is_some_and(|refusal| refusal.code == Code::KeptStopped)
    }

    /// Allocation stays as it is: what is owed is held for the nodes of the new restart.
    fn inherited_allocation(
        &self,
        request: &Request,
        members: &[Member],
    ) -> Result<Option<AllocationDebt>, Blocker> {
        let holders = members.iter().map(|member| member.pod_uid.clone());
        match &self.ledger.debts.allocation {
            Some(debt) => {
                let holders: BTreeSet<String> =
                    debt.holders.iter().cloned().chain(holders).collect();
                let mut debt = debt.clone();
                debt.holders = holders.into_iter().collect();
                Ok(Some(debt))
            }
            None => self.allocation_debt(&request.id, self.view.allocation()?, holders.collect()),
        }
    }
}

/// As [`preflight`], for a node that we may have stopped ourselves: such a one is stopped once more
/// only by the sequence, so that no start of before can reach it any more.
pub(super) fn may_be_stopped_again(pod: &Pod, manager: &Manager) -> Result<(), Blocker> {
    let is_down =
        |refusal: &Blocker| refusal.code == Code::KeptStopped && manager.state == State::Stopped;
    preflight(pod).map(|_| ()).or_else(|refusal| match is_down(&refusal) {
        true => Ok(()),
        false => Err(refusal),
    })
}

fn is_coordinated(request: &Request) -> bool {
    request.strategy == Strategy::Coordinated
}
