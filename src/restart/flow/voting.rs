//! Handing the only vote over for the time of a restart: by a voting exclusion, which must be
//! removed again. Engines remove all exclusions at once, so where there are others beside ours, ours
//! is neither set nor removed.

use std::collections::BTreeSet;

use super::{Move, wait};
use crate::planner::Planner;
use crate::rules::StopImpact;
use crate::{Action, Blocker, Code, ExclusionDebt, Member, Reason, RemovedExclusion, Voting};

/// What takes every exclusion away, by hand.
const COMMAND: &str = "DELETE /_cluster/voting_config_exclusions?wait_for_removal=false";

/// Who votes, where there are configurations.
struct Votes<'a> {
    committed: &'a BTreeSet<String>,
    accepted: &'a BTreeSet<String>,
    excluded: &'a BTreeSet<String>,
}

impl<'a> Planner<'a> {
    /// Whether a member that takes its slot on these terms is to hand its vote over. If somebody
    /// else's exclusions are in the way, an outage is what is left, where that is allowed.
    pub(super) fn hands_over(&self, terms: &StopImpact) -> Result<bool, Blocker> {
        if terms.vote_recipient.is_none() {
            return Ok(false);
        }
        let Some(votes) = self.votes()? else { return Ok(false) };
        match self.none_but(None, votes.excluded) {
            Err(_) if self.policy.allow_outage => Ok(false),
            none_beside => none_beside.map(|()| true),
        }
    }

    /// Writes down, with the member's slot, that it will have to vote again.
    pub(super) fn owe_vote(&mut self, restart: &str, member: &Member) {
        self.ledger.to_mut().debts.exclusion = Some(ExclusionDebt {
            node: member.node.clone(),
            pod_uid: member.pod_uid.clone(),
            restart: restart.to_owned(),
        });
    }

    /// Before the stop: `None` once neither configuration has the node any more.
    pub(super) fn hand_over(&mut self, member: &Member) -> Option<Move> {
        let debt = self.exclusion_debt(member)?;
        let votes = match self.votes() {
            Ok(votes) => votes?,
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        let id = self.view.node(&member.node).map(|node| &node.id).or(member.node_id.as_ref())?;
        let has_moved = !votes.committed.contains(id) && !votes.accepted.contains(id);
        if has_moved {
            return None;
        }
        if votes.excluded.contains(&debt.node) {
            let message = format!("the vote of {} is being handed over", debt.node);
            return Some(wait(Code::HandingOver, message));
        }
        if let Err(refusal) = self.none_but(Some(&debt.node), votes.excluded) {
            return Some(Move::Wait(refusal));
        }
        let message = format!("the engine is asked to do without the vote of {}", debt.node);
        self.act(Action::ExcludeVoter { node: debt.node });
        Some(wait(Code::HandingOver, message))
    }

    /// After the proof, or at the end of the way back: `None` once the node may vote again, or once
    /// that is left to be owed because others are excluded beside it.
    pub(super) fn vote_again(&mut self, member: &Member) -> Option<Move> {
        let debt = self.exclusion_debt(member)?;
        let votes = match self.votes() {
            Ok(votes) => votes?,
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        if !votes.excluded.contains(&debt.node)
            || self.none_but(Some(&debt.node), votes.excluded).is_err()
        {
            return None;
        }
        self.act(Action::ClearVotingExclusions);
        Some(wait(Code::HandingOver, "its voting exclusion is being removed"))
    }

    /// The end of a member's part: strikes out what is seen gone.
    pub(super) fn settle_exclusion(&mut self, uid: &str) {
        let Some(debt) = self.ledger.debts.exclusion.clone().filter(|debt| debt.pod_uid == uid)
        else {
            return;
        };
        let is_gone = |votes: Option<Votes<'_>>| {
            votes.is_none_or(|votes| !votes.excluded.contains(&debt.node))
        };
        if self.votes().is_ok_and(is_gone) {
            self.strike_exclusion(debt);
        }
    }

    /// Whether an exclusion is owed that nobody under way is going to remove, or was until this
    /// plan.
    pub(super) fn is_exclusion_due(&self) -> bool {
        [&*self.ledger, &self.snapshot.ledger].into_iter().any(|ledger| {
            let debt = ledger.debts.exclusion.as_ref();
            debt.is_some_and(|debt| ledger.under_way().all(|one| one.pod_uid != debt.pod_uid))
        })
    }

    /// Removes it.
    pub(super) fn pay_exclusion(&mut self) {
        let Some(debt) = self.ledger.debts.exclusion.clone() else {
            return self.sweep_exclusions();
        };
        if !self.is_let_go(&debt.pod_uid) {
            return;
        }
        if self.nothing_left() {
            self.ledger.to_mut().debts.exclusion = None;
            return;
        }
        let must =
            |why: &str| format!("the voting exclusion of {} must be removed: {why}", debt.node);
        let excluded = match self.votes() {
            Ok(votes) => votes.map(|votes| votes.excluded),
            Err(refusal) => return self.wait_all(Code::Debts, must(&refusal.message)),
        };
        let Some(excluded) = excluded.filter(|excluded| excluded.contains(&debt.node)) else {
            self.tell(None, Reason::DebtPaid, format!("{} may vote again", debt.node));
            return self.strike_exclusion(debt);
        };
        match self.none_but(Some(&debt.node), excluded) {
            Ok(()) => self.act(Action::ClearVotingExclusions),
            Err(refusal) => self.wait_all(refusal.code, must(&refusal.message)),
        }
    }

    /// Exclusions of ours that nothing in the ledger asks for: a request that arrived late made
    /// them.
    fn sweep_exclusions(&mut self) {
        let Ok(Some(votes)) = self.votes() else { return };
        let ours = |node: &String| self.is_lifted(node);
        if !votes.excluded.is_empty() && votes.excluded.iter().all(ours) {
            self.act(Action::ClearVotingExclusions);
        }
    }

    fn strike_exclusion(&mut self, debt: ExclusionDebt) {
        let now = self.snapshot.now;
        let ledger = self.ledger.to_mut();
        ledger.debts.exclusion = None;
        ledger.removed_exclusions.retain(|one| one.may_come_again(now) && one.node != debt.node);
        ledger.removed_exclusions.push(RemovedExclusion { node: debt.node, at: now });
    }

    fn exclusion_debt(&self, member: &Member) -> Option<ExclusionDebt> {
        let debt = self.ledger.debts.exclusion.as_ref();
        debt.filter(|debt| debt.pod_uid == member.pod_uid).cloned()
    }

    /// Who votes; none where there are no configurations.
    fn votes(&self) -> Result<Option<Votes<'a>>, Blocker> {
        match self.view.engine()?.voting.as_ref().map_err(Blocker::engine_unreachable)? {
            Voting::Configurations { committed, accepted, excluded } => {
                Ok(Some(Votes { committed, accepted, excluded }))
            }
            Voting::MinimumMasterNodes(_) => Ok(None),
        }
    }

    /// Passes if nobody is excluded but `ours`, or by a late request of ours.
    fn none_but(&self, ours: Option<&str>, excluded: &BTreeSet<String>) -> Result<(), Blocker> {
        let is_foreign = |node: &&String| Some(node.as_str()) != ours && !self.is_lifted(node);
        let foreign: Vec<&str> = excluded.iter().filter(is_foreign).map(String::as_str).collect();
        if foreign.is_empty() {
            return Ok(());
        }
        Err(Blocker {
            code: Code::ForeignController,
            message: format!(
                "somebody else has excluded {} from voting, and exclusions can only be removed all \
                 at once; if they are needed no more, remove them: {COMMAND}",
                foreign.join(", ")
            ),
        })
    }

    /// Whether an exclusion of ours for this node was removed a short while ago.
    fn is_lifted(&self, node: &str) -> bool {
        let now = self.snapshot.now;
        self.ledger.removed_exclusions.iter().any(|one| one.node == node && one.may_come_again(now))
    }
}
