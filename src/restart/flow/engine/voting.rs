//! Transfers the only vote to another node for the time of a restart, by a voting exclusion, which
//! must be removed again. Engines remove all exclusions at once, so while there are exclusions of
//! other clients, ours is neither set nor removed.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::observed::is_deleted_with_its_pods;
use crate::flow::turn::{Turn, TurnView, wait};
use crate::ledger::LedgerChange;
use crate::rules::StopImpact;
use crate::{Action, Blocker, Code, ExclusionDebt, Ledger, Member, Reason, Restart, Voting};

/// The request that removes every voting exclusion, for messages.
pub(crate) const CLEAR_EXCLUSIONS: &str =
    "DELETE /_cluster/voting_config_exclusions?wait_for_removal=false";

/// The voting configurations (ids of nodes) and the exclusions (names of nodes).
pub(crate) struct Votes<'a> {
    committed: &'a BTreeSet<String>,
    accepted: &'a BTreeSet<String>,
    pub(crate) excluded: &'a BTreeSet<String>,
}

impl<'a> Votes<'a> {
    /// Ids of the nodes in one of the two configurations.
    pub(crate) fn voters(&self) -> impl Iterator<Item = &'a String> {
        self.committed.union(self.accepted)
    }
}

/// True if a member that takes its slot on these terms must hand its vote over first. While there are
/// exclusions of other clients it cannot, and only an outage is left, where that is allowed.
pub(crate) fn hands_over(
    context: &Context<'_>,
    ledger: &Ledger,
    terms: &StopImpact,
) -> Result<bool, Blocker> {
    if terms.vote_recipient.is_none() {
        return Ok(false);
    }
    let Some(votes) = votes(context)? else { return Ok(false) };
    let allows_outage = |restart: &Restart| context.policy.allows_outage_for(&restart.request);
    match none_but(context, ledger, None, votes.excluded) {
        Err(_) if ledger.restart.as_ref().is_some_and(allows_outage) => Ok(false),
        none_beside => none_beside.map(|()| true),
    }
}

/// The debt that is written with the member's slot: its voting exclusion must be removed later.
pub(crate) fn owe_vote(restart: &str, member: &Member) -> LedgerChange {
    LedgerChange::SetExclusionDebt(Some(ExclusionDebt {
        node: member.node.clone(),
        pod_uid: member.pod_uid.clone(),
        restart: restart.to_owned(),
    }))
}

/// Hands the member's vote over before its stop; passes once neither voting configuration contains the node
/// any more.
pub(crate) fn hand_over(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = exclusion_debt(ledger, member) else { return Ok(()) };
    let Some(votes) = votes(context)? else { return Ok(()) };
    let id = context.index.node(&member.node).map(|node| &node.id).or(member.node_id.as_ref());
    let Some(id) = id else { return Ok(()) };
    if votes.voters().all(|voter| voter != id) {
        return Ok(());
    }
    if votes.excluded.contains(&debt.node) {
        let message = format!("the vote of {} is being handed over", debt.node);
        return Err(wait(Code::HandingOver, message));
    }
    none_but(context, ledger, Some(&debt.node), votes.excluded)?;
    let message = format!("the engine is asked to exclude {} from voting", debt.node);
    let action = Action::ExcludeVoter { node: debt.node.clone() };
    Err(Turn::act_and_wait(action, Code::HandingOver, message))
}

/// Removes the member's voting exclusion once its node is proven back, or at the end of a compensation;
/// passes when the node may vote again. If there are exclusions of other clients it passes as well, and the
/// debt stays.
pub(crate) fn vote_again(view: &TurnView<'_, '_>) -> Result<(), Turn> {
    let TurnView { context, ledger, member, .. } = *view;
    let Some(debt) = exclusion_debt(ledger, member) else { return Ok(()) };
    let Some(votes) = votes(context)? else { return Ok(()) };
    if !votes.excluded.contains(&debt.node)
        || none_but(context, ledger, Some(&debt.node), votes.excluded).is_err()
    {
        return Ok(());
    }
    Err(Turn::act_and_wait(
        Action::ClearVotingExclusions,
        Code::HandingOver,
        "its voting exclusion is being removed",
    ))
}

/// The ledger change of a finished member: if its exclusion no longer exists, it is no longer a debt.
pub(crate) fn settle(context: &Context<'_>, ledger: &Ledger, uid: &str) -> Option<LedgerChange> {
    let debt = ledger.debts.exclusion.as_ref().filter(|debt| debt.pod_uid == uid)?;
    let is_gone =
        |votes: Option<Votes<'_>>| votes.is_none_or(|votes| !votes.excluded.contains(&debt.node));
    votes(context).is_ok_and(is_gone).then(|| removed(context, debt))
}

/// True if there is a debt for an exclusion that no member under way is going to remove, now or when this
/// plan began.
pub(crate) fn is_exclusion_due(context: &Context<'_>, ledger: &Ledger) -> bool {
    [ledger, &context.snapshot.ledger].into_iter().any(|ledger| {
        let debt = ledger.debts.exclusion.as_ref();
        debt.is_some_and(|debt| ledger.under_way().all(|one| one.pod_uid != debt.pod_uid))
    })
}

/// Removes the exclusion of a member that is no longer under way.
pub(crate) fn pay(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(debt) = &ledger.debts.exclusion else {
        return remove_late_exclusions(context, ledger);
    };
    if !ledger.is_released(&debt.pod_uid) {
        return changes;
    }
    if is_deleted_with_its_pods(context) {
        return Changes::of_ledger(LedgerChange::SetExclusionDebt(None));
    }
    let must = |why: &str| format!("the voting exclusion of {} must be removed: {why}", debt.node);
    let excluded = match votes(context) {
        Ok(votes) => votes.map(|votes| votes.excluded),
        Err(blocker) => {
            changes.wait_all(Code::Debts, must(&blocker.message));
            return changes;
        }
    };
    match excluded.filter(|excluded| excluded.contains(&debt.node)) {
        None => {
            changes.event(None, Reason::DebtPaid, format!("{} may vote again", debt.node));
            changes.change(removed(context, debt));
        }
        Some(excluded) => match none_but(context, ledger, Some(&debt.node), excluded) {
            Ok(()) => changes.act(Action::ClearVotingExclusions),
            Err(blocker) => changes.wait_all(blocker.code, must(&blocker.message)),
        },
    }
    changes
}

/// Removes exclusions of ours that no ledger entry explains: late requests have made them.
fn remove_late_exclusions(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let ours = |node: &String| was_removed_recently(context, ledger, node);
    match votes(context) {
        Ok(Some(votes)) if !votes.excluded.is_empty() && votes.excluded.iter().all(ours) => {
            Changes::action(Action::ClearVotingExclusions)
        }
        Ok(_) | Err(_) => Changes::default(),
    }
}

fn removed(context: &Context<'_>, debt: &ExclusionDebt) -> LedgerChange {
    LedgerChange::ExclusionRemoved { node: debt.node.clone(), at: context.snapshot.now }
}

fn exclusion_debt<'l>(ledger: &'l Ledger, member: &Member) -> Option<&'l ExclusionDebt> {
    ledger.debts.exclusion.as_ref().filter(|debt| debt.pod_uid == member.pod_uid)
}

/// The voting configurations, if the engine has any.
pub(crate) fn votes<'a>(context: &Context<'a>) -> Result<Option<Votes<'a>>, Blocker> {
    match context.index.engine()?.voting.as_ref().map_err(Blocker::engine_unreachable)? {
        Voting::Configurations { committed, accepted, excluded } => {
            Ok(Some(Votes { committed, accepted, excluded }))
        }
        Voting::MinimumMasterNodes(_) => Ok(None),
    }
}

/// Passes if only `ours` is excluded, or nodes that a late request of ours has excluded.
pub(crate) fn none_but(
    context: &Context<'_>,
    ledger: &Ledger,
    ours: Option<&str>,
    excluded: &BTreeSet<String>,
) -> Result<(), Blocker> {
    let is_foreign = |node: &&String| {
        Some(node.as_str()) != ours && !was_removed_recently(context, ledger, node)
    };
    let foreign: Vec<&str> = excluded.iter().filter(is_foreign).map(String::as_str).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let message = format!(
        "another client has excluded {} from voting, and exclusions can only be removed all at once; \
         if they are needed no more, remove them: {CLEAR_EXCLUSIONS}",
        foreign.join(", ")
    );
    Err(Blocker { code: Code::ForeignController, message })
}

/// True if an exclusion of ours for this node was removed a short while ago.
pub(crate) fn was_removed_recently(context: &Context<'_>, ledger: &Ledger, node: &str) -> bool {
    let now = context.snapshot.now;
    ledger.removed_exclusions.iter().any(|one| one.node == node && one.may_come_again(now))
}
