//! A cluster of which nodes leave, as plain data, and what each step makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::changes::Changes;
use crate::ledger::LedgerChange;
use crate::tests::scenario::moment;
use crate::{
    Action, Allocation, AllocationBefore, Engine, Leaving, LeavingShards, Ledger, MemberStep, Node,
    NodeSet, NodeSets, Pod, RemovedExclusion, ShardCopies, ShardCopy, Snapshot, StartDebt, Voting,
};
use stayput_api::ConfigChoice;

/// Three nodes, and a restart that has not begun.
pub(super) static BASE: LazyLock<Snapshot> =
    LazyLock::new(|| moment(&["three nodes", "pause", "request rolling r1", "run 200ms"]).0);

/// Everything that is there. A node set whose name begins with `m` has masters, with `d` data nodes,
/// with `a` both.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct World {
    pub(super) sets: Vec<NodeSet>,
    pub(super) pods: BTreeSet<String>,
    /// In the engine's list.
    pub(super) listed: BTreeSet<String>,
    pub(super) shards: BTreeMap<String, usize>,
    /// Nodes in the engine's list whose shards are not known.
    pub(super) uncounted: BTreeSet<String>,
    pub(super) stuck: BTreeMap<String, String>,
    pub(super) roles: BTreeMap<String, BTreeSet<String>>,
    pub(super) excluded: AllocationBefore,
    pub(super) voters: BTreeSet<String>,
    pub(super) excluded_voters: BTreeSet<String>,
    pub(super) has_votes: bool,
    pub(super) without_primary: Option<String>,
    pub(super) immovable: BTreeSet<String>,
    /// Those that have not said their roles.
    pub(super) silent: BTreeSet<String>,
    pub(super) debts: Leaving,
    pub(super) paused: bool,
    pub(super) outside_windows: bool,
    pub(super) unfinished: Option<String>,
    /// Nodes that must be started.
    pub(super) busy: BTreeSet<String>,
    /// A restart is open.
    pub(super) has_restart: bool,
    /// It has a node under way.
    pub(super) under_way: bool,
    pub(super) late_votes: BTreeSet<String>,
}

impl World {
    /// Node sets, each with its number of nodes and, if it is declared, the wanted number.
    pub(super) fn of(sets: &[(&str, u32, Option<u32>)]) -> Self {
        let sets = sets.iter().map(|(name, replicas, wanted)| NodeSet {
            name: (*name).to_owned(),
            stateful_set: format!("logs-{name}"),
            replicas: *replicas,
            wanted: wanted.unwrap_or(0),
            is_declared: wanted.is_some(),
        });
        let mut world = Self { sets: sets.collect(), has_votes: true, ..Self::default() };
        world.sets.sort_by(|a, b| a.name.cmp(&b.name));
        for set in &world.sets {
            world.pods.extend((0..set.replicas).map(|ordinal| set.node(ordinal)));
        }
        world.listed = world.pods.clone();
        world.voters = world.pods.iter().filter(|node| is_master(node)).cloned().collect();
        world
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = BASE.clone();
        let pod = |name: &String| Pod {
            uid: uid(name),
            name: name.clone(),
            node: name.clone(),
            ..BASE.pods[0].clone()
        };
        snapshot.pods = self.pods.iter().map(pod).collect();
        snapshot.cluster.finalizer = true;
        snapshot.cluster.paused = self.paused;
        let opens = snapshot.now.plus(60_000);
        snapshot.cluster.closed_until = self.outside_windows.then_some(opens);
        snapshot.ledger = self.ledger();
        snapshot.engine = Ok(self.engine());
        let counted = self.listed.iter().filter(|node| !self.uncounted.contains(*node));
        let shards = |node: &String| {
            let count = self.shards.get(node).copied().unwrap_or_default();
            (node.clone(), LeavingShards { count, stuck: self.stuck.get(node).cloned() })
        };
        snapshot.node_sets = Some(NodeSets {
            sets: self.sets.clone(),
            unfinished: self.unfinished.clone(),
            shards: counted.map(shards).collect(),
        });
        snapshot
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        if self.has_restart || self.under_way {
            ledger.restart = BASE.ledger.restart.clone();
        }
        if let Some(restart) = ledger.restart.as_mut().filter(|_| self.under_way) {
            restart.members[0].step = MemberStep::Restarting;
        }
        let start = |node: &String| StartDebt {
            pod_uid: uid(node),
            node: node.clone(),
            stop_sequence: None,
            sequence: 7,
            config: ConfigChoice::Mounted,
            checksum: None,
            absent_since: None,
            since: None,
            update: None,
        };
        ledger.debts.start = self.busy.iter().map(start).collect();
        ledger.debts.leaving = self.debts.clone();
        let removed = |node: &String| RemovedExclusion { node: node.clone(), at: BASE.now };
        ledger.removed_exclusions = self.late_votes.iter().map(removed).collect();
        ledger
    }

    /// The id of a node is its name.
    fn engine(&self) -> Engine {
        let engine = BASE.engine.as_ref().unwrap();
        let node = |name: &String| {
            let is_silent = self.silent.contains(name);
            let mut roles = self.roles.get(name).cloned().unwrap_or_default();
            if roles.is_empty() && is_data(name) {
                roles.insert("data".to_owned());
            }
            if is_master(name) {
                roles.insert("master".to_owned());
            }
            Node {
                id: name.clone(),
                name: name.clone(),
                roles: if is_silent { [].into() } else { roles },
                roles_unknown: is_silent,
                ..engine.nodes[0].clone()
            }
        };
        let voting = if self.has_votes {
            Voting::Configurations {
                committed: self.voters.clone(),
                accepted: self.voters.clone(),
                excluded: self.excluded_voters.clone(),
            }
        } else {
            Voting::MinimumMasterNodes(1)
        };
        let lost = self.without_primary.iter().map(|index| ShardCopy {
            index: index.clone(),
            shard: 0,
            primary: true,
            search_only: false,
            started: false,
            node: None,
        });
        let excluded = self.excluded.clone();
        Engine {
            nodes: self.listed.iter().map(node).collect(),
            voting: Ok(voting),
            shards: Ok(lost.collect::<ShardCopies>()),
            immovable: self.immovable.clone(),
            allocation: Ok(Allocation { excluded, ..Allocation::default() }),
            ..engine.clone()
        }
    }

    /// What the step makes of it, at once.
    pub(super) fn act(&mut self, step: Changes) {
        for change in step.ledger {
            let LedgerChange::SetLeaving { leaving, .. } = change else { panic!("{change:?}") };
            self.debts = leaving;
        }
        for action in step.actions {
            match action {
                Action::ExcludeNames { persistent, transient } => {
                    let there = &mut self.excluded;
                    there.persistent = persistent.unwrap_or(there.persistent.take());
                    there.transient = transient.unwrap_or(there.transient.take());
                }
                Action::ExcludeVoter { node } => {
                    self.voters.remove(&node);
                    self.excluded_voters.insert(node);
                }
                Action::ClearVotingExclusions => self.excluded_voters.clear(),
                Action::RemoveNode { set, replicas } => {
                    let set = self.sets.iter_mut().find(|one| one.name == set).unwrap();
                    assert_eq!(set.replicas, replicas + 1, "one at a time");
                    set.replicas = replicas;
                    let node = set.node(replicas);
                    self.pods.remove(&node);
                    self.listed.remove(&node);
                }
                Action::RemoveNodeSet { set } => self.sets.retain(|one| one.name != set),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn uid(pod: &str) -> String {
    format!("uid of {pod}")
}

pub(super) fn is_master(node: &str) -> bool {
    node.starts_with("logs-m") || node.starts_with("logs-a")
}

pub(super) fn is_data(node: &str) -> bool {
    node.starts_with("logs-d") || node.starts_with("logs-a")
}
