//! A cluster of which nodes leave, as plain data, and what each action makes of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Action, Excluded, LeaveFacts, Leaving, Seen, SeenNode, Set, Votes};

/// Everything that is there. A node set whose name begins with `m` has masters, with `d` data nodes,
/// with `a` both.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct World {
    pub(super) sets: Vec<Set>,
    pub(super) pods: BTreeSet<String>,
    /// In the engine's list.
    pub(super) listed: BTreeSet<String>,
    pub(super) shards: BTreeMap<String, usize>,
    pub(super) stuck: BTreeMap<String, String>,
    pub(super) roles: BTreeMap<String, BTreeSet<String>>,
    pub(super) excluded: Excluded,
    pub(super) voters: BTreeSet<String>,
    pub(super) excluded_voters: BTreeSet<String>,
    pub(super) has_votes: bool,
    pub(super) without_primary: Option<String>,
    pub(super) immovable: BTreeSet<String>,
    /// Those that have not said their roles.
    pub(super) silent: BTreeSet<String>,
    pub(super) debts: Leaving,
    pub(super) paused: bool,
    pub(super) outside_windows: Option<String>,
    pub(super) changes: Option<String>,
    pub(super) busy: BTreeSet<String>,
    pub(super) under_way: bool,
    pub(super) late_votes: BTreeSet<String>,
}

impl World {
    /// Node sets, each with its number of nodes and, if it is declared, the wanted number.
    pub(super) fn of(sets: &[(&str, u32, Option<u32>)]) -> Self {
        let sets = sets.iter().map(|(name, replicas, wanted)| Set {
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

    pub(super) fn facts(&self) -> LeaveFacts {
        LeaveFacts {
            pods: self.pods.clone(),
            paused: self.paused,
            outside_windows: self.outside_windows.clone(),
            changes: self.changes.clone(),
            busy: self.busy.clone(),
            under_way: self.under_way,
            late_votes: self.late_votes.clone(),
        }
    }

    /// The id of a node is its name.
    pub(super) fn seen(&self) -> Seen {
        let node = |name: &String| {
            let data = if is_data(name) { BTreeSet::from(["data".to_owned()]) } else { [].into() };
            let node = SeenNode {
                id: name.clone(),
                is_master: is_master(name),
                data_roles: if self.silent.contains(name) {
                    [].into()
                } else {
                    self.roles.get(name).cloned().unwrap_or(data)
                },
                roles_unknown: self.silent.contains(name),
                shards: self.shards.get(name).copied().unwrap_or(0),
                stuck: self.stuck.get(name).cloned(),
            };
            (name.clone(), node)
        };
        let votes = Votes { voters: self.voters.clone(), excluded: self.excluded_voters.clone() };
        Seen {
            nodes: self.listed.iter().map(node).collect(),
            without_primary: self.without_primary.clone(),
            immovable: self.immovable.clone(),
            votes: self.has_votes.then_some(votes),
            excluded: self.excluded.clone(),
        }
    }

    /// What the action makes of it, at once.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Write(debts) => self.debts = debts,
            Action::Exclude { persistent, transient } => {
                let there = &mut self.excluded;
                there.persistent = persistent.unwrap_or(there.persistent.take());
                there.transient = transient.unwrap_or(there.transient.take());
            }
            Action::ExcludeVoter(node) => {
                self.voters.remove(&node);
                self.excluded_voters.insert(node);
            }
            Action::ClearVotingExclusions => self.excluded_voters.clear(),
            Action::Scale { set, replicas } => {
                let set = self.sets.iter_mut().find(|one| one.name == set).unwrap();
                assert_eq!(set.replicas, replicas + 1, "one at a time");
                set.replicas = replicas;
                let node = set.node(replicas);
                self.pods.remove(&node);
                self.listed.remove(&node);
            }
            Action::Remove { set } => self.sets.retain(|one| one.name != set),
        }
    }
}

pub(super) fn is_master(node: &str) -> bool {
    node.starts_with("logs-m") || node.starts_with("logs-a")
}

pub(super) fn is_data(node: &str) -> bool {
    node.starts_with("logs-d") || node.starts_with("logs-a")
}
