//! Nodes that leave: excluded from allocation, emptied, out of the voting configuration, and then
//! removed one at a time. A decision is one action, and the reason why the nodes wait. It is made again
//! from the new state after the action.

mod begin;
mod debt;
mod exclusion;
mod facts;
mod take;

use std::collections::{BTreeMap, BTreeSet};

use crate::Refusal;
pub use debt::{ExcludedBefore, Leaving};
pub use facts::{Excluded, LeaveFacts, Seen, SeenNode, Set, Votes, sets};

/// The request that removes every voting exclusion, for messages.
const CLEAR_EXCLUSIONS: &str = "DELETE /_cluster/voting_config_exclusions?wait_for_removal=false";

/// Hint to a person about voting exclusions of other clients, which keep ours from being set
/// and removed.
pub fn others_exclusions(nodes: &[&str]) -> String {
    format!(
        "another client has excluded {} from voting, and exclusions can only be removed all at once; \
         if they are needed no more, remove them: {CLEAR_EXCLUSIONS}",
        nodes.join(", ")
    )
}

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write down the changes that are about to be made, or were undone. Do nothing else with this.
    Write(Leaving),
    /// Set the values that differ; an inner `None` unsets one.
    Exclude {
        /// The persistent value.
        persistent: Option<Option<String>>,
        /// The transient value.
        transient: Option<Option<String>>,
    },
    /// Exclude this node from voting.
    ExcludeVoter(String),
    /// Remove all voting exclusions.
    ClearVotingExclusions,
    /// Remove the node with the highest ordinal.
    Scale {
        /// Name of the node set.
        set: String,
        /// Number of nodes afterwards.
        replicas: u32,
    },
    /// Delete the StatefulSet of a set that is gone and has no pods.
    Remove {
        /// Name of the node set.
        set: String,
    },
}

/// A decision: the next action, and how far each node is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeavePlan {
    /// The next action.
    pub action: Option<Action>,
    /// Why no node may begin to leave, if a person has to change that.
    pub refusal: Option<Refusal>,
    /// The nodes that leave, each with the reason why it waits.
    pub nodes: BTreeMap<String, String>,
}

impl LeavePlan {
    fn act(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }
}

/// Decides about the nodes that leave. `seen` has the reason if the engine's state is not known.
pub fn leave(
    sets: &[Set],
    facts: &LeaveFacts,
    seen: Result<&Seen, &str>,
    debts: &Leaving,
) -> LeavePlan {
    let leaving: BTreeSet<String> = sets.iter().flat_map(Set::leaving).collect();
    let mut turn = LeavePlan::default();
    if let Some(removed) = removed(sets, facts) {
        return turn.act(Action::Remove { set: removed.name.clone() });
    }
    if leaving.is_empty() && debts.is_empty() {
        return turn;
    }
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) => {
            let all = leaving.union(&debts.nodes);
            turn.nodes = all.map(|node| (node.clone(), why.to_owned())).collect();
            return turn;
        }
    };
    let going = going(sets, facts, seen, &leaving, debts);
    for node in &going {
        let what = if facts.pods.contains(node) { "its pod is being deleted" } else { LISTED };
        turn.nodes.insert(node.clone(), what.to_owned());
    }
    match pay_vote(seen, debts, &leaving, &going) {
        Ok(None) => {}
        Ok(Some(action)) => return turn.act(action),
        Err(why) => {
            turn.nodes.extend(leaving.iter().map(|node| (node.clone(), why.clone())));
            return turn;
        }
    }
    // The nodes that have not begun to leave yet may have to stay for now.
    let new: BTreeSet<String> = leaving.difference(&debts.nodes).cloned().collect();
    let mut keep: BTreeSet<String> = leaving.union(&going).cloned().collect();
    let begins = if new.is_empty() { Ok(()) } else { begin::begin(sets, facts, seen, &leaving) };
    if let Err(refused) = begins {
        keep.retain(|node| !new.contains(node));
        turn.nodes.extend(new.iter().map(|node| (node.clone(), refused.why())));
        turn.refusal = refused.refusal();
    }
    if let Some(action) = exclusion::exclude(seen, debts, &keep) {
        for node in leaving.difference(&new) {
            turn.nodes.insert(node.clone(), "it is being excluded from allocation".to_owned());
        }
        return turn.act(action);
    }
    let empty = match going.first() {
        Some(first) => format!("it is empty; {first} goes first"),
        None => "it is empty; its turn comes".to_owned(),
    };
    for node in sets.iter().flat_map(Set::leaving).filter(|node| keep.contains(node)) {
        let waits = take::shards(&node, seen).err().unwrap_or_else(|| empty.clone());
        turn.nodes.insert(node, waits);
    }
    if !going.is_empty() {
        return turn;
    }
    for set in sets {
        let Some(node) = set.next().filter(|node| keep.contains(node)) else { continue };
        match take::take(set, &node, facts, seen, debts) {
            Ok(action) => return turn.act(action),
            Err(why) => drop(turn.nodes.insert(node, why)),
        }
    }
    turn
}

const LISTED: &str = "its pod is gone, and the engine still lists it";

/// A set that is not declared and has no node any more.
fn removed<'a>(sets: &'a [Set], facts: &LeaveFacts) -> Option<&'a Set> {
    sets.iter().find(|set| {
        let has_pods = facts.pods.iter().any(|pod| set.has(pod));
        !set.is_declared && set.replicas == 0 && !has_pods
    })
}

/// The nodes that were removed from their set and still have a pod.
fn going(
    sets: &[Set],
    facts: &LeaveFacts,
    seen: &Seen,
    leaving: &BTreeSet<String>,
    debts: &Leaving,
) -> BTreeSet<String> {
    let stays = |node: &String| {
        sets.iter().any(|set| (0..set.wanted).any(|ordinal| set.node(ordinal) == *node))
    };
    let is_there = |node: &String| facts.pods.contains(node) || seen.nodes.contains_key(node);
    let taken = debts.nodes.iter().filter(|node| !leaving.contains(*node));
    taken.filter(|node| !stays(node) && is_there(node)).cloned().collect()
}

/// Undoes the voting exclusion of a node that has left, or that stays. Engines remove all exclusions at
/// once, so those of other clients are waited for.
fn pay_vote(
    seen: &Seen,
    debts: &Leaving,
    leaving: &BTreeSet<String>,
    going: &BTreeSet<String>,
) -> Result<Option<Action>, String> {
    let Some(voter) = &debts.voter else { return Ok(None) };
    if leaving.contains(voter) || going.contains(voter) {
        return Ok(None);
    }
    let excluded = seen.votes.as_ref().map(|votes| &votes.excluded);
    match excluded.filter(|excluded| excluded.contains(voter)) {
        None => Ok(Some(Action::Write(Leaving { voter: None, ..debts.clone() }))),
        Some(excluded) => match take::foreign(excluded, Some(voter)) {
            None => Ok(Some(Action::ClearVotingExclusions)),
            Some(why) => Err(why),
        },
    }
}
