//! Nodes that leave: excluded from allocation, emptied, out of the voting configuration, and then
//! removed one at a time. A decision is one action, and the reason why the nodes wait. It is made again
//! from the new state after the action.

mod facts;

use std::collections::{BTreeMap, BTreeSet};

use crate::Refusal;
use facts::exclude;
pub use facts::{Excluded, ExcludedBefore, LeaveFacts, Leaving, Seen, SeenNode, Set, Votes, sets};

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
    View { sets, facts, seen, debts, leaving, going }.plan()
}

/// Everything that a decision reads.
struct View<'a> {
    sets: &'a [Set],
    facts: &'a LeaveFacts,
    seen: &'a Seen,
    debts: &'a Leaving,
    /// The nodes that leave.
    leaving: BTreeSet<String>,
    /// The nodes that were removed from their set and still have a pod.
    going: BTreeSet<String>,
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

/// Why nodes may not begin to leave.
enum NotYet {
    /// The reason passes by itself, or a person knows about it.
    Waits(String),
    /// A person has to change the declaration, or move the data.
    Refused(Refusal),
}

impl NotYet {
    fn why(&self) -> String {
        match self {
            Self::Waits(why) => why.clone(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }

    fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Waits(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

impl View<'_> {
    fn plan(&self) -> LeavePlan {
        let mut turn = LeavePlan::default();
        for node in &self.going {
            let what =
                if self.facts.pods.contains(node) { "its pod is being deleted" } else { LISTED };
            turn.nodes.insert(node.clone(), what.to_owned());
        }
        match self.pay_vote() {
            Ok(None) => {}
            Ok(Some(action)) => return turn.act(action),
            Err(why) => {
                turn.nodes.extend(self.leaving.iter().map(|node| (node.clone(), why.clone())));
                return turn;
            }
        }
        // The nodes that have not begun to leave yet may have to stay for now.
        let new: BTreeSet<String> = self.leaving.difference(&self.debts.nodes).cloned().collect();
        let mut keep: BTreeSet<String> = self.leaving.union(&self.going).cloned().collect();
        let begins = if new.is_empty() { Ok(()) } else { self.begin() };
        if let Err(refused) = begins {
            keep.retain(|node| !new.contains(node));
            turn.nodes.extend(new.iter().map(|node| (node.clone(), refused.why())));
            turn.refusal = refused.refusal();
        }
        if let Some(action) = exclude(self.seen, self.debts, &keep) {
            for node in self.leaving.difference(&new) {
                turn.nodes.insert(node.clone(), "it is being excluded from allocation".to_owned());
            }
            return turn.act(action);
        }
        let empty = match self.going.first() {
            Some(first) => format!("it is empty; {first} goes first"),
            None => "it is empty; its turn comes".to_owned(),
        };
        for node in self.sets.iter().flat_map(Set::leaving).filter(|node| keep.contains(node)) {
            let waits = self.has_no_shards(&node).err().unwrap_or_else(|| empty.clone());
            turn.nodes.insert(node, waits);
        }
        if !self.going.is_empty() {
            return turn;
        }
        for set in self.sets {
            let Some(node) = set.next().filter(|node| keep.contains(node)) else { continue };
            match self.take(set, &node) {
                Ok(action) => return turn.act(action),
                Err(why) => drop(turn.nodes.insert(node, why)),
            }
        }
        turn
    }

    /// Undoes the voting exclusion of a node that has left, or that stays. Engines remove all exclusions at
    /// once, so those of other clients are waited for.
    fn pay_vote(&self) -> Result<Option<Action>, String> {
        let Some(voter) = &self.debts.voter else { return Ok(None) };
        if self.leaving.contains(voter) || self.going.contains(voter) {
            return Ok(None);
        }
        let excluded = self.seen.votes.as_ref().map(|votes| &votes.excluded);
        match excluded.filter(|excluded| excluded.contains(voter)) {
            None => Ok(Some(Action::Write(Leaving { voter: None, ..self.debts.clone() }))),
            Some(excluded) => match foreign(excluded, Some(voter)) {
                None => Ok(Some(Action::ClearVotingExclusions)),
                Some(why) => Err(why),
            },
        }
    }

    /// Passes if new nodes may begin to leave: new nodes and changes come first, and data needs a place.
    fn begin(&self) -> Result<(), NotYet> {
        if self.facts.paused {
            return Err(NotYet::Waits("paused (spec.paused): no node leaves".to_owned()));
        }
        if let Some(why) = &self.facts.changes {
            return Err(NotYet::Waits(why.clone()));
        }
        let absent = self.sets.iter().filter(|set| set.is_declared).find_map(|set| {
            let mut stay = (0..set.wanted).map(|ordinal| set.node(ordinal));
            stay.find(|node| !self.seen.nodes.contains_key(node))
        });
        if let Some(absent) = absent {
            let why = format!("{absent} stays and is not in the cluster: it has to join first");
            return Err(NotYet::Waits(why));
        }
        // What a person has to change is said before its time comes.
        self.has_a_place().map_err(NotYet::Refused)?;
        self.all_can_move().map_err(NotYet::Refused)?;
        match &self.facts.outside_windows {
            Some(why) => Err(NotYet::Waits(why.clone())),
            None => Ok(()),
        }
    }

    /// No node that may hold such an index leaves while the engine has indices that it does not move.
    fn all_can_move(&self) -> Result<(), Refusal> {
        for set in self.sets {
            for name in set.leaving() {
                if let Err(why) = self.can_be_moved(&name) {
                    let field = if set.is_declared { "count" } else { "" };
                    return Err(Refusal::of_set(&set.name, field, format!("{name}: {why}")));
                }
            }
        }
        Ok(())
    }

    /// One node of every role with shards stays. A node with the role `data` has all tiers, and its shards
    /// may fit any tier.
    fn has_a_place(&self) -> Result<(), Refusal> {
        let stays = |role: &str| {
            let mut others =
                self.seen.nodes.iter().filter(|(name, _)| !self.leaving.contains(*name));
            others.any(|(_, node)| {
                let roles = &node.data_roles;
                roles.contains(role)
                    || roles.contains("data")
                    || (role == "data" && !roles.is_empty())
            })
        };
        for set in self.sets {
            for name in set.leaving() {
                let Some(node) = self.seen.nodes.get(&name).filter(|node| node.shards > 0) else {
                    continue;
                };
                let Some(role) = node.data_roles.iter().find(|role| !stays(role)) else { continue };
                let field = if set.is_declared { "count" } else { "" };
                return Err(Refusal::of_set(
                    &set.name,
                    field,
                    format!(
                        "{name} has {} shards, and no node with the role {role} would stay: declare one \
                         in another node set first, or move or delete these shards",
                        node.shards
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The next action for this node, or why it waits.
    fn take(&self, set: &Set, node: &str) -> Result<Action, String> {
        self.has_no_shards(node)?;
        self.can_be_moved(node)?;
        if let Some(index) = &self.seen.without_primary {
            return Err(format!(
                "index {index} has a shard without a primary: the last copy may be on this node"
            ));
        }
        if self.facts.paused {
            return Err("paused (spec.paused): it is empty, and stays for now".to_owned());
        }
        if let Some(why) = &self.facts.outside_windows {
            return Err(format!("it is empty; {why}"));
        }
        if self.facts.busy.contains(node) {
            return Err(
                "a restart has it under way, or it is kept stopped: that has to end".to_owned()
            );
        }
        if self.facts.under_way {
            return Err("it is empty; a restart has other nodes under way".to_owned());
        }
        let vote = match self.seen.nodes.get(node) {
            Some(listed) if listed.is_master => self.hand_over(node, listed)?,
            Some(_) => None,
            None => {
                self.may_have_no_vote()?;
                None
            }
        };
        let scale = || Action::Scale { set: set.name.clone(), replicas: set.replicas - 1 };
        Ok(vote.unwrap_or_else(scale))
    }

    /// Passes if the engine has no shard on the node.
    fn has_no_shards(&self, node: &str) -> Result<(), String> {
        let Some(listed) = self.seen.nodes.get(node).filter(|listed| listed.shards > 0) else {
            return Ok(());
        };
        let count = match listed.shards {
            1 => "1 shard is still on it".to_owned(),
            many => format!("{many} shards are still on it"),
        };
        Err(listed.stuck.as_ref().map_or(count.clone(), |stuck| format!("{count}; {stuck}")))
    }

    /// Passes if the engine has no index that it would not move from the node. A node that is not in the
    /// cluster, or has not reported its roles, may have one.
    fn can_be_moved(&self, node: &str) -> Result<(), String> {
        let Some(index) = self.seen.immovable.first() else { return Ok(()) };
        let holds_none = |node: &SeenNode| !node.roles_unknown && node.data_roles.is_empty();
        if self.seen.nodes.get(node).is_some_and(holds_none) {
            return Ok(());
        }
        let more = match self.seen.immovable.len() - 1 {
            0 => String::new(),
            many => format!(" (and {many} more)"),
        };
        Err(format!(
            "index {index}{more} is closed, and this engine does not move closed indices: open it, or delete it"
        ))
    }

    /// Passes if a node that is not in the cluster has no vote. Its id is not known: a vote of a node that is
    /// not in the cluster either may be its own, and nobody could take that over any more.
    fn may_have_no_vote(&self) -> Result<(), String> {
        let Some(id) = self.seen.votes.iter().flat_map(|votes| self.missing_voters(votes)).next()
        else {
            return Ok(());
        };
        Err(format!(
            "it is not in the cluster, and a vote may be its own: {id} has one and is not in the cluster \
             either. Its start ends this; if its data is lost, take that vote away: \
             POST /_cluster/voting_config_exclusions?node_ids={id}, and then {CLEAR_EXCLUSIONS}"
        ))
    }

    /// The ids of the voters that are not in the cluster.
    fn missing_voters<'a>(&'a self, votes: &'a Votes) -> impl Iterator<Item = &'a String> {
        let is_listed = |id: &String| self.seen.nodes.values().any(|other| other.id == *id);
        votes.voters.iter().filter(move |id| !is_listed(id))
    }

    /// The next action so that a master loses its vote, if it still has one.
    fn hand_over(&self, node: &str, listed: &SeenNode) -> Result<Option<Action>, String> {
        let Some(votes) = &self.seen.votes else {
            return Err(
                "this engine has no voting configurations: a master cannot leave".to_owned()
            );
        };
        match self.debts.voter.as_deref() {
            Some(voter) if voter != node => {
                Err(format!("masters leave one at a time; {voter} first"))
            }
            Some(_) if !votes.excluded.contains(node) => {
                self.may_hand_over(node, listed, votes)?;
                Ok(Some(Action::ExcludeVoter(node.to_owned())))
            }
            Some(_) if votes.voters.contains(&listed.id) => {
                Err("it is empty; its vote is being taken over".to_owned())
            }
            Some(_) => Ok(None),
            None => {
                self.may_hand_over(node, listed, votes)?;
                Ok(Some(Action::Write(Leaving {
                    voter: Some(node.to_owned()),
                    ..self.debts.clone()
                })))
            }
        }
    }

    /// Passes if the others can decide without the node, and every one of them is there.
    fn may_hand_over(&self, node: &str, listed: &SeenNode, votes: &Votes) -> Result<(), String> {
        if self.facts.late_votes.contains(node) {
            return Err(
                "a restart took its vote a few minutes ago: a late request of it may come".into()
            );
        }
        if let Some(why) = foreign(&votes.excluded, Some(node)) {
            return Err(why);
        }
        if self.missing_voters(votes).next().is_some() {
            return Err(
                "a master with a vote is not in the cluster: without this one more, too few \
                        might be left to elect one"
                    .to_owned(),
            );
        }
        let others =
            self.seen.nodes.values().filter(|other| other.is_master && other.id != listed.id);
        if others.count() == 0 {
            return Err("no other node can be elected master".to_owned());
        }
        Ok(())
    }
}

/// Why nothing can be done while other clients have excluded nodes from voting.
fn foreign(excluded: &BTreeSet<String>, ours: Option<&str>) -> Option<String> {
    let foreign: Vec<&str> =
        excluded.iter().map(String::as_str).filter(|name| Some(*name) != ours).collect();
    (!foreign.is_empty()).then(|| others_exclusions(&foreign))
}
