//! Nodes that leave a declared cluster: excluded from allocation, emptied, out of the voting configuration,
//! and then removed one at a time. Each plan has at most one action or one write for them; the next is decided
//! on its effect.

mod exclusion;

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::voting::{CLEAR_EXCLUSIONS, Votes, none_but, votes, was_removed_recently};
use crate::flow::observed::not_outside_windows;
use crate::ledger::LedgerChange;
use crate::{
    Action, AllocationBefore, Blocker, Code, Engine, Event, Leaving, Ledger, Node, NodeSet,
    NodeSets, Policy, Reason, ShardCopies, Snapshot, changes_to_come, holds_data,
};

/// The next step for the nodes that leave, and how far each of them is.
#[derive(Debug, Default)]
pub struct LeavePlan {
    pub(crate) changes: Changes,
    /// Field and reason why no node may begin to leave, if a person has to change that.
    pub refusal: Option<String>,
    /// The nodes that leave, each with the reason why it waits.
    pub nodes: BTreeMap<String, String>,
}

/// Delay until the next plan while nodes are emptied or removed, in milliseconds.
const PAUSE: u64 = 2_000;

/// The step of a plan.
pub(crate) fn leave(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = LeavePlan::of(context, ledger).changes;
    let are_leaving = context.snapshot.node_sets.is_some() && !ledger.debts.leaving.is_empty();
    changes.requeue = are_leaving.then_some(PAUSE);
    changes
}

/// How far the nodes are that leave.
pub fn leave_plan(snapshot: &Snapshot, policy: &Policy) -> LeavePlan {
    if snapshot.node_sets.is_none() {
        return LeavePlan::default();
    }
    LeavePlan::of(&Context::new(snapshot, policy), &snapshot.ledger)
}

impl LeavePlan {
    fn of(context: &Context<'_>, ledger: &Ledger) -> Self {
        let mut plan = Self::default();
        let Some(node_sets) = &context.snapshot.node_sets else { return plan };
        if let Some(set) = node_sets.sets.iter().find(|set| has_ended(context, set)) {
            return plan.act(Action::RemoveNodeSet { set: set.name.clone() });
        }
        let debts = &ledger.debts.leaving;
        if node_sets.leaving().is_empty() && debts.is_empty() {
            return plan;
        }
        match View::of(context, ledger, node_sets) {
            Ok(view) => view.plan(),
            Err(Blocker { message, .. }) => {
                let all = node_sets.concerned(debts).into_iter();
                plan.nodes = all.map(|node| (node, message.clone())).collect();
                plan
            }
        }
    }

    fn act(mut self, action: Action) -> Self {
        self.changes.act(action);
        self
    }
}

/// True for a set that is not declared and has no node any more.
fn has_ended(context: &Context<'_>, set: &NodeSet) -> bool {
    let has_pods = || context.index.pods().any(|pod| set.has(&pod.name));
    !set.is_declared && set.replicas == 0 && !has_pods()
}

/// Everything that a decision reads.
struct View<'v, 'a> {
    context: &'v Context<'a>,
    ledger: &'v Ledger,
    node_sets: &'a NodeSets,
    debts: &'v Leaving,
    engine: &'a Engine,
    shards: &'a ShardCopies,
    /// `None` for an engine without voting configurations.
    votes: Option<Votes<'a>>,
    excluded: &'a AllocationBefore,
    /// The nodes that leave.
    leaving: BTreeSet<String>,
    /// The nodes that were removed from their set and still have a pod, or are still in the cluster.
    going: BTreeSet<String>,
}

/// Why nodes may not begin to leave.
enum NotYet {
    /// The reason passes by itself, or a person knows about it.
    Waits(String),
    /// A person has to change the declaration, or move the data.
    Refused(String),
}

impl NotYet {
    /// Refuses a node of this set to leave.
    fn refuse(set: &NodeSet, node: &str, why: &str) -> Self {
        let field = if set.is_declared { ".count" } else { "" };
        Self::Refused(format!("spec.nodeSets[{}]{field}: {node}{why}", set.name))
    }
}

impl<'v, 'a> View<'v, 'a> {
    fn of(
        context: &'v Context<'a>,
        ledger: &'v Ledger,
        node_sets: &'a NodeSets,
    ) -> Result<Self, Blocker> {
        let engine = context.index.engine()?;
        let leaving = node_sets.leaving();
        let is_there = |node: &String| {
            context.index.node(node).is_some() || context.index.pods().any(|pod| pod.name == *node)
        };
        let stays = |node: &String| {
            node_sets.sets.iter().any(|set| set.staying().any(|staying| staying == *node))
        };
        let debts = &ledger.debts.leaving;
        let mut listed = node_sets.concerned(debts).into_iter();
        let uncounted = |node: &String| {
            context.index.node(node).is_some() && !node_sets.shards.contains_key(node)
        };
        if let Some(node) = listed.find(uncounted) {
            let message = format!("the shards of {node} have not been counted");
            return Err(Blocker { code: Code::EngineUnreachable, message });
        }
        let taken = debts.nodes.iter().filter(|node| !leaving.contains(*node));
        Ok(Self {
            context,
            ledger,
            node_sets,
            debts,
            engine,
            shards: engine.shards.as_ref().map_err(Blocker::engine_unreachable)?,
            votes: votes(context)?,
            excluded: &context.index.allocation()?.excluded,
            going: taken.filter(|node| !stays(node) && is_there(node)).cloned().collect(),
            leaving,
        })
    }

    fn plan(&self) -> LeavePlan {
        let mut plan = LeavePlan::default();
        for node in &self.going {
            let has_pod = self.context.index.pods().any(|pod| pod.name == *node);
            let what = if has_pod {
                "its pod is being deleted"
            } else {
                "its pod is gone, and the engine still lists it"
            };
            plan.nodes.insert(node.clone(), what.to_owned());
        }
        match self.pay_vote() {
            Ok(None) => {}
            Ok(Some(changes)) => return LeavePlan { changes, ..plan },
            Err(why) => {
                plan.nodes.extend(self.leaving.iter().map(|node| (node.clone(), why.clone())));
                return plan;
            }
        }
        // The nodes that have not begun to leave yet may have to stay for now.
        let new: BTreeSet<String> = self.leaving.difference(&self.debts.nodes).cloned().collect();
        let mut keep: BTreeSet<String> = self.leaving.union(&self.going).cloned().collect();
        let begins = if new.is_empty() { Ok(()) } else { self.begin() };
        if let Err(not_yet) = begins {
            keep.retain(|node| !new.contains(node));
            let (NotYet::Waits(why) | NotYet::Refused(why)) = &not_yet;
            plan.nodes.extend(new.iter().map(|node| (node.clone(), why.clone())));
            plan.refusal = match not_yet {
                NotYet::Waits(_) => None,
                NotYet::Refused(why) => Some(why),
            };
        }
        if let Some(changes) = self.exclude(&keep) {
            for node in self.leaving.difference(&new) {
                plan.nodes.insert(node.clone(), "it is being excluded from allocation".to_owned());
            }
            return LeavePlan { changes, ..plan };
        }
        self.take_next(plan, &keep)
    }

    /// Takes the next of the nodes in `keep`, if none is going.
    fn take_next(&self, mut plan: LeavePlan, keep: &BTreeSet<String>) -> LeavePlan {
        let empty = match self.going.first() {
            Some(first) => format!("it is empty; {first} goes first"),
            None => "it is empty; its turn comes".to_owned(),
        };
        for node in self.leaving.intersection(keep) {
            let waits = self.has_no_shards(node).err().unwrap_or_else(|| empty.clone());
            plan.nodes.insert(node.clone(), waits);
        }
        if !self.going.is_empty() {
            return plan;
        }
        for set in &self.node_sets.sets {
            let Some(node) = set.next().filter(|node| keep.contains(node)) else { continue };
            match self.take(set, &node) {
                Ok(changes) => return LeavePlan { changes, ..plan },
                Err(why) => drop(plan.nodes.insert(node, why)),
            }
        }
        plan
    }

    /// Writes down what is owed from now on. Our finalizer comes first, so that the SearchCluster cannot go
    /// before it is paid.
    fn write(&self, leaving: Leaving) -> Changes {
        let cluster = &self.context.snapshot.cluster;
        if !cluster.finalizer && !cluster.deleting && !leaving.is_empty() {
            return Changes::action(Action::AddFinalizer);
        }
        let mut changes = Changes::default();
        for node in leaving.nodes.difference(&self.debts.nodes) {
            let message = format!("{node} leaves the cluster: its shards are moved to other nodes");
            changes.events.push(self.event(node, Reason::NodeLeaving, message));
        }
        changes.change(LedgerChange::SetLeaving { leaving, at: self.context.snapshot.now });
        changes
    }

    fn event(&self, node: &str, reason: Reason, message: String) -> Event {
        let pod = self.context.index.pods().find(|pod| pod.node == node);
        Event { pod: pod.map(|pod| pod.uid.clone()), reason, message }
    }

    /// Undoes the voting exclusion of a node that has left, or that stays. Engines remove all exclusions at
    /// once, so those of other clients are waited for.
    fn pay_vote(&self) -> Result<Option<Changes>, String> {
        let Some(voter) = &self.debts.voter else { return Ok(None) };
        if self.leaving.contains(voter) || self.going.contains(voter) {
            return Ok(None);
        }
        let excluded = self.votes.as_ref().map(|votes| votes.excluded);
        let Some(excluded) = excluded.filter(|excluded| excluded.contains(voter)) else {
            return Ok(Some(self.write(Leaving { voter: None, ..self.debts.clone() })));
        };
        none_but(self.context, self.ledger, Some(voter), excluded).map_err(|it| it.message)?;
        Ok(Some(Changes::action(Action::ClearVotingExclusions)))
    }

    /// Passes if new nodes may begin to leave: new nodes and changes come first, and data needs a place.
    fn begin(&self) -> Result<(), NotYet> {
        if self.context.snapshot.cluster.paused {
            return Err(NotYet::Waits("paused (spec.paused): no node leaves".to_owned()));
        }
        self.nothing_comes_first().map_err(NotYet::Waits)?;
        let declared = self.node_sets.sets.iter().filter(|set| set.is_declared);
        let absent = declared
            .flat_map(NodeSet::staying)
            .find(|node| self.context.index.node(node).is_none());
        if let Some(absent) = absent {
            let why = format!("{absent} stays and is not in the cluster: it has to join first");
            return Err(NotYet::Waits(why));
        }
        // What a person has to change is said before its time comes.
        for set in &self.node_sets.sets {
            for node in set.leaving() {
                self.has_a_place(&node).map_err(|why| NotYet::refuse(set, &node, &why))?;
            }
        }
        for set in &self.node_sets.sets {
            for node in set.leaving() {
                self.can_be_moved(&node)
                    .map_err(|why| NotYet::refuse(set, &node, &format!(": {why}")))?;
            }
        }
        not_outside_windows(self.context).map_err(|blocker| NotYet::Waits(blocker.message))
    }

    /// Passes if all declared objects are made, and no restart is under way or to come.
    fn nothing_comes_first(&self) -> Result<(), String> {
        if let Some(unfinished) = &self.node_sets.unfinished {
            return Err(format!("others come first: {unfinished}"));
        }
        if let Some(restart) = &self.ledger.restart {
            let id = &restart.request.id;
            return Err(format!("the restart {id} comes first: nodes leave when it has ended"));
        }
        if self.ledger.queued.is_some() {
            return Err("the queued restart comes first: nodes leave when it has ended".to_owned());
        }
        match changes_to_come(self.context.snapshot, self.context.policy) {
            Ok(0) => Ok(()),
            Ok(1) => Err("changes come first: 1 node waits for its restart".to_owned()),
            Ok(many) => Err(format!("changes come first: {many} nodes wait for their restart")),
            Err(unknown) => Err(format!("changes come first: {}", unknown.message)),
        }
    }

    /// Passes if a node of every role with shards stays. A node with the role `data` has all tiers, and its
    /// shards may fit any tier.
    fn has_a_place(&self, name: &str) -> Result<(), String> {
        let count = self.count(name);
        let Some(node) = self.context.index.node(name).filter(|_| count > 0) else { return Ok(()) };
        let stays = |role: &str| {
            let others = self.engine.nodes.iter().filter(|node| !self.leaving.contains(&node.name));
            others.into_iter().any(|node| {
                let mut roles = node.roles.iter().filter(|role| holds_data(role));
                roles.any(|other| other == role || other == "data" || role == "data")
            })
        };
        let mut roles = node.roles.iter().filter(|role| holds_data(role));
        let Some(role) = roles.find(|role| !stays(role)) else { return Ok(()) };
        Err(format!(
            " has {count} shards, and no node with the role {role} would stay: declare one in another node \
             set first, or move or delete these shards"
        ))
    }

    /// Number of shard copies on a node that leaves.
    fn count(&self, node: &str) -> usize {
        self.node_sets.shards.get(node).map_or(0, |shards| shards.count)
    }

    /// The next step for this node, or why it waits.
    fn take(&self, set: &NodeSet, node: &str) -> Result<Changes, String> {
        self.has_no_shards(node)?;
        self.can_be_moved(node)?;
        if let Some(copy) = self.shards.unassigned_primaries().next() {
            let index = copy.index;
            return Err(format!(
                "index {index} has a shard without a primary: the last copy may be on this node"
            ));
        }
        if self.context.snapshot.cluster.paused {
            return Err("paused (spec.paused): it is empty, and stays for now".to_owned());
        }
        not_outside_windows(self.context)
            .map_err(|blocker| format!("it is empty; {}", blocker.message))?;
        let mut busy = self.ledger.busy_pods().filter_map(|uid| self.context.index.pod(uid));
        if busy.any(|pod| pod.node == node) {
            return Err(
                "a restart has it under way, or it is kept stopped: that has to end".to_owned()
            );
        }
        if self.ledger.under_way().next().is_some() {
            return Err("it is empty; a restart has other nodes under way".to_owned());
        }
        match self.context.index.node(node) {
            Some(listed) if listed.is_master_eligible() => {
                if let Some(changes) = self.hand_over(node, listed)? {
                    return Ok(changes);
                }
            }
            Some(_) => {}
            None => self.may_have_no_vote()?,
        }
        let message = format!("{node} has no shards and no vote any more, and is being removed");
        let mut changes = Changes::action(Action::RemoveNode {
            set: set.name.clone(),
            replicas: set.replicas - 1,
        });
        changes.events.push(self.event(node, Reason::NodeRemoved, message));
        Ok(changes)
    }

    /// Passes if the engine has no shard on the node.
    fn has_no_shards(&self, node: &str) -> Result<(), String> {
        let count = match self.count(node) {
            0 => return Ok(()),
            1 => "1 shard is still on it".to_owned(),
            many => format!("{many} shards are still on it"),
        };
        let stuck = self.node_sets.shards.get(node).and_then(|shards| shards.stuck.as_ref());
        Err(stuck.map_or(count.clone(), |stuck| format!("{count}; {stuck}")))
    }

    /// Passes if the engine has no index that it would not move from the node. A node that is not in the
    /// cluster, or has not reported its roles, may have one.
    fn can_be_moved(&self, node: &str) -> Result<(), String> {
        let Some(index) = self.engine.immovable.first() else { return Ok(()) };
        if self.context.index.node(node).is_some_and(|node| !node.holds_data()) {
            return Ok(());
        }
        let more = match self.engine.immovable.len() - 1 {
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
        let missing = self.votes.as_ref().and_then(|votes| self.missing_voter(votes));
        let Some(id) = missing else { return Ok(()) };
        Err(format!(
            "it is not in the cluster, and a vote may be its own: {id} has one and is not in the cluster \
             either. Its start ends this; if its data is lost, take that vote away: \
             POST /_cluster/voting_config_exclusions?node_ids={id}, and then {CLEAR_EXCLUSIONS}"
        ))
    }

    /// The id of a voter that is not in the cluster.
    fn missing_voter<'s>(&self, votes: &Votes<'s>) -> Option<&'s String> {
        let is_listed = |id: &String| self.engine.nodes.iter().any(|node| node.id == *id);
        votes.voters().find(|id| !is_listed(id))
    }

    /// The next step so that a master loses its vote, if it still has one.
    fn hand_over(&self, name: &str, node: &Node) -> Result<Option<Changes>, String> {
        let Some(votes) = &self.votes else {
            return Err(
                "this engine has no voting configurations: a master cannot leave".to_owned()
            );
        };
        match self.debts.voter.as_deref() {
            Some(voter) if voter != name => {
                Err(format!("masters leave one at a time; {voter} first"))
            }
            Some(_) if !votes.excluded.contains(name) => {
                self.may_hand_over(name, node, votes)?;
                Ok(Some(Changes::action(Action::ExcludeVoter { node: name.to_owned() })))
            }
            Some(_) if votes.voters().any(|voter| *voter == node.id) => {
                Err("it is empty; its vote is being taken over".to_owned())
            }
            Some(_) => Ok(None),
            None => {
                self.may_hand_over(name, node, votes)?;
                let voter = Some(name.to_owned());
                Ok(Some(self.write(Leaving { voter, ..self.debts.clone() })))
            }
        }
    }

    /// Passes if the others can decide without the node, and every one of them is there.
    fn may_hand_over(&self, name: &str, node: &Node, votes: &Votes<'_>) -> Result<(), String> {
        if was_removed_recently(self.context, self.ledger, name) {
            return Err(
                "a restart took its vote a few minutes ago: a late request of it may come".into()
            );
        }
        none_but(self.context, self.ledger, Some(name), votes.excluded)
            .map_err(|blocker| blocker.message)?;
        if self.missing_voter(votes).is_some() {
            return Err(
                "a master with a vote is not in the cluster: without this one more, too few \
                        might be left to elect one"
                    .to_owned(),
            );
        }
        let is_other = |other: &Node| other.is_master_eligible() && other.id != node.id;
        if !self.engine.nodes.iter().any(is_other) {
            return Err("no other node can be elected master".to_owned());
        }
        Ok(())
    }
}
