//! A simulated engine cluster: its nodes, its voters and its shard copies. It shows what a real
//! cluster shows during a restart.

use std::collections::{BTreeMap, BTreeSet};

use super::recovery::StateRecovery;
use super::shards::Shards;
use super::votes::Votes;
use crate::{
    Allocation, AllocationBefore, Engine, Health, Marker, Node, Record, RunningSnapshot, Unknown,
};

/// A node as a scenario describes it.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) roles: BTreeSet<String>,
    pub(crate) zone: Option<String>,
}

/// A shutdown record, and when the engine has prepared for it.
#[derive(Debug, Clone)]
struct Announced {
    reason: String,
    complete_at: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Searching {
    pub(crate) uuid: String,
    pub(crate) roles: BTreeMap<String, Role>,
    /// Names of the nodes in the cluster, with the id of their process.
    joined: BTreeMap<String, String>,
    /// Those of them that hang: the cluster lists them, and they take part in nothing.
    pub(crate) silent: BTreeSet<String>,
    master: Option<String>,
    pub(crate) votes: Votes,
    pub(crate) shards: Shards,
    pub(crate) searchable_snapshots: BTreeSet<String>,
    /// The largest heap of each node whose engine says it, in bytes.
    pub(crate) heaps: BTreeMap<String, u64>,
    /// The snapshots that are being taken, by name of the node.
    pub(crate) snapshots: BTreeMap<String, RunningSnapshot>,
    pub(crate) allocation: Allocation,
    /// Whether it supports node-shutdown records.
    pub(crate) keeps_records: bool,
    records: BTreeMap<String, Announced>,
    /// Another client deletes records of nodes that are in the cluster, as ECK does.
    pub(crate) loses_records: bool,
    pub(crate) recovery: StateRecovery,
    /// Its API is unreachable.
    pub(crate) unreachable: bool,
    /// It answers, and refuses every request that changes the cluster.
    pub(crate) refuses_writes: bool,
}

/// From a complete record until another client deletes it, in milliseconds.
const UNTIL_DELETED: u64 = 500;

/// The id of a node; it survives restarts.
pub(crate) fn id_of(node: &str) -> String {
    format!("id-{node}")
}

impl Searching {
    pub(crate) fn new(roles: BTreeMap<String, Role>) -> Self {
        Self {
            uuid: "uuid-of-logs".into(),
            roles,
            joined: BTreeMap::new(),
            silent: BTreeSet::new(),
            master: None,
            votes: Votes::default(),
            shards: Shards::default(),
            searchable_snapshots: BTreeSet::new(),
            snapshots: BTreeMap::new(),
            heaps: BTreeMap::new(),
            allocation: Allocation::default(),
            keeps_records: false,
            records: BTreeMap::new(),
            loses_records: false,
            recovery: StateRecovery::default(),
            unreachable: false,
            refuses_writes: false,
        }
    }

    fn is_eligible(&self, node: &str) -> bool {
        self.roles.get(node).is_some_and(|role| {
            role.roles.contains("master") || role.roles.contains("cluster_manager")
        })
    }

    /// Updates the node list from the processes that answer: name of the node to id of the run.
    pub(crate) fn settle(&mut self, now: u64, up: &BTreeMap<String, String>) {
        if self.loses_records {
            let is_in = |id: &str| self.joined.keys().any(|node| id_of(node) == id);
            let is_kept = |at: u64| now < at + UNTIL_DELETED;
            self.records.retain(|id, record| is_kept(record.complete_at) || !is_in(id));
        }
        let eligible: BTreeSet<String> =
            up.keys().filter(|node| self.is_eligible(node)).map(|node| id_of(node)).collect();
        let is_silent = |id: &&String| self.silent.iter().any(|node| id_of(node) == **id);
        let answering = eligible.iter().filter(|id| !is_silent(id)).cloned().collect();
        let formed = self.votes.can_elect(&answering);
        self.joined = if formed { up.clone() } else { BTreeMap::new() };
        let masters = up.iter().filter(|(node, _)| self.is_eligible(node));
        let masters = masters.map(|(_, run)| run.clone()).collect();
        self.recovery.settle(now, &masters, formed);
        if !formed {
            self.master = None;
            return;
        }
        self.elect();
        self.votes.reconfigure(&eligible, self.master.as_deref());
        // A master that is excluded from voting steps down.
        self.elect();
        let holds = |node: &&String| self.holds_data(node) && !self.recovery.is_under_way();
        let data: BTreeSet<String> = self.joined.keys().filter(holds).cloned().collect();
        let effective = self.effective_setting().map(str::to_owned);
        self.shards.settle(now, &data, effective.as_deref());
    }

    /// Keeps the master if it is in the cluster; elects another one if there is none.
    fn elect(&mut self) {
        let stays = |master: &String| self.can_lead(master) && !self.votes.is_moved(master);
        if !self.master.as_ref().is_some_and(stays) {
            let voter = |node: &&String| self.votes.has(node) && self.can_lead(node);
            self.master = self.joined.keys().find(voter).cloned();
        }
    }

    fn can_lead(&self, node: &str) -> bool {
        self.joined.contains_key(node) && !self.silent.contains(node)
    }

    /// The node is excluded from voting.
    pub(crate) fn exclude(&mut self, node: &str) -> bool {
        self.takes_writes() && self.votes.exclude(node)
    }

    pub(crate) fn clear_exclusions(&mut self) -> bool {
        self.takes_writes() && self.votes.clear_exclusions()
    }

    fn holds_data(&self, node: &str) -> bool {
        let is_data = |role: &String| role == "data" || role.starts_with("data_");
        self.roles.get(node).is_some_and(|role| role.roles.iter().any(is_data))
    }

    pub(crate) fn effective_setting(&self) -> Option<&str> {
        let setting = &self.allocation.setting;
        setting.transient.as_deref().or(setting.persistent.as_deref())
    }

    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let records = self.records.values().map(|record| record.complete_at);
        let own = records.filter(|at| *at > now).chain(self.recovery.next(now));
        own.chain(self.shards.next(now)).min()
    }

    pub(crate) fn is_joined(&self, node: &str) -> bool {
        self.joined.contains_key(node)
    }

    /// Whether it accepts a request that changes the cluster.
    pub(crate) fn takes_writes(&self) -> bool {
        let is_blocked = self.recovery.is_under_way();
        self.master.is_some() && !self.unreachable && !self.refuses_writes && !is_blocked
    }

    pub(crate) fn tighten(&mut self, value: &str, marker: Marker) -> bool {
        if !self.takes_writes() {
            return false;
        }
        let setting = &mut self.allocation.setting;
        setting.persistent = Some(value.to_owned());
        if marker.before.transient.is_some() {
            setting.transient = Some(value.to_owned());
        }
        self.allocation.marker = Some(marker);
        true
    }

    /// Another SearchCluster of the same engine begins a restart.
    pub(crate) fn is_limited_by_another(&mut self) {
        let before = self.allocation.setting.clone();
        let (cluster, restart) = ("search/other".to_owned(), "r0".to_owned());
        self.allocation.setting.persistent = Some("primaries".to_owned());
        self.allocation.marker = Some(Marker { cluster, restart, before });
    }

    pub(crate) fn restore(&mut self, before: &AllocationBefore) -> bool {
        if !self.takes_writes() {
            return false;
        }
        self.allocation = Allocation { setting: before.clone(), ..Allocation::default() };
        true
    }

    pub(crate) fn announce(&mut self, now: u64, node_id: &str, reason: &str) -> bool {
        if !self.takes_writes() || !self.keeps_records {
            return false;
        }
        let record = Announced { reason: reason.to_owned(), complete_at: now + 500 };
        self.records.insert(node_id.to_owned(), record);
        true
    }

    pub(crate) fn forget(&mut self, node_id: &str) -> bool {
        self.takes_writes() && self.records.remove(node_id).is_some()
    }

    /// What its API reports.
    pub(crate) fn observe(&self, now: u64) -> Result<Engine, Unknown> {
        if self.unreachable || self.joined.is_empty() {
            let message = "no node of the engine answers with an elected master".to_owned();
            return Err(Unknown { message });
        }
        if self.recovery.is_under_way() {
            // As the reconciler does: an empty list would be taken for one of an engine without any.
            let message = "the engine has not read its indices and settings from disk yet";
            return Err(Unknown { message: message.to_owned() });
        }
        Ok(self.answer(now))
    }

    /// Whether it answers that it has no master, if a node of it runs.
    pub(crate) fn has_no_master(&self) -> bool {
        !self.unreachable && self.joined.is_empty()
    }

    /// What it answers, also while it hides what it has.
    fn answer(&self, now: u64) -> Engine {
        let node = |(name, run): (&String, &String)| Node {
            id: id_of(name),
            name: name.clone(),
            ephemeral_id: format!("ephemeral-{run}"),
            roles: if self.silent.contains(name) {
                BTreeSet::new()
            } else {
                self.roles[name].roles.clone()
            },
            roles_unknown: self.silent.contains(name),
            zone: self.roles[name].zone.clone(),
            version: "8.19.0".into(),
            heap_max: self.heaps.get(name).copied(),
            snapshot: self.snapshots.get(name).cloned(),
        };
        let record = |(id, record): (&String, &Announced)| Record {
            node_id: id.clone(),
            is_restart: true,
            reason: record.reason.clone(),
            complete: record.complete_at <= now,
            preparing: Vec::new(),
        };
        let engine = Engine {
            version: "elasticsearch 8.19.0".into(),
            cluster_uuid: self.uuid.clone(),
            nodes: self.joined.iter().map(node).collect(),
            elected_master: self.master.as_ref().map(|master| id_of(master)),
            health: Ok(self.health(now)),
            voting: Ok(self.votes.observe()),
            shards: Ok(self.shards.copies(now).into_iter().collect()),
            searchable_snapshots: Ok(self.searchable_snapshots.clone()),
            immovable: BTreeSet::new(),
            allocation: Ok(self.allocation.clone()),
            records: Ok(self.keeps_records.then(|| self.records.iter().map(record).collect())),
        };
        if !self.recovery.is_under_way() {
            return engine;
        }
        Engine {
            shards: Ok(std::iter::empty::<crate::ShardCopy>().collect()),
            searchable_snapshots: Ok(BTreeSet::new()),
            allocation: Ok(Allocation::default()),
            records: Ok(self.keeps_records.then(Vec::new)),
            ..engine
        }
    }

    pub(crate) fn health(&self, now: u64) -> Health {
        let data = self.joined.keys().filter(|node| self.holds_data(node)).count();
        self.shards.health(now, u32::try_from(data).unwrap())
    }

    /// One line for people.
    pub(crate) fn describe(&self, now: u64) -> String {
        let Some(master) = &self.master else { return "no master".into() };
        let nodes: Vec<&str> = self.joined.keys().map(String::as_str).collect();
        let absent = self.roles.keys().filter(|node| !self.joined.contains_key(*node));
        let absent: Vec<&str> = absent.map(String::as_str).collect();
        let nodes = match (self.roles.len(), &absent[..]) {
            (0..=5, _) => nodes.join(" "),
            (all, []) => format!("all {all} nodes"),
            (_, absent) => format!("all but {}", absent.join(" ")),
        };
        let mut line = format!("{:?}, {nodes}, master {master}", self.health(now).color);
        line.make_ascii_lowercase();
        for node in self.silent.iter().filter(|node| self.joined.contains_key(*node)) {
            line += &format!(", {node} hangs");
        }
        if self.recovery.is_under_way() {
            line += ", its state is not read yet";
        }
        if let Some(setting) = self.effective_setting() {
            line += &format!(", allocation {setting}");
        }
        if let Some(marker) = &self.allocation.marker {
            line += &format!(" (marked by {})", marker.restart);
        }
        line += &self.votes.describe();
        for (node, record) in &self.records {
            line += &format!(", shutdown of {node} announced by {}", record.reason);
        }
        line
    }
}
