//! The simulated cluster, as plain data with its own clock: the SearchCluster, pods and their
//! managers, the kubelet, the engine's cluster.

pub(crate) mod engine;
pub(crate) mod machine;
mod object;
pub(crate) mod perform;
mod pods;
mod recovery;
mod shards;
mod sidecar;
pub(crate) mod template;
pub(crate) mod votes;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Ledger, Snapshot, Time, Unknown, Unreturnable, has_leftovers, reads_engine, to_be_set_back,
};

pub(crate) use engine::{Role, Searching};
pub(crate) use machine::{Asked, Verdict};
pub(crate) use object::{Object, Tool};
pub(crate) use perform::describe_action;
pub(crate) use pods::{Services, SimPod};

/// The time at which every simulation starts.
pub(crate) const START: u64 = 1_795_000_000_000;
/// How often a reconciler at rest looks for what late requests have left.
const LOOK_INTERVAL: u64 = 60_000;

/// A request to a manager, and its result.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub(crate) uid: String,
    pub(crate) pod: String,
    pub(crate) is_stop: bool,
    pub(crate) sequence: Option<u64>,
    pub(crate) by: String,
    pub(crate) verdict: Verdict,
    /// The request changed the state of the engine.
    pub(crate) took_effect: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) object: Object,
    pub(crate) pods: Vec<SimPod>,
    /// The selector of the SearchCluster matches no pod.
    pub(crate) selects_nothing: bool,
    pub(crate) engine: Searching,
    /// Decisive settings of configs that have any, by checksum.
    pub(crate) configs: BTreeMap<String, crate::Settings>,
    /// When a reconciler at rest has last looked for what late requests have left.
    pub(crate) looked_at: Option<u64>,
    /// Requests that have not arrived yet, by their time of arrival.
    /// With the version of the object when they were sent.
    late: BTreeMap<(u64, u64), (Option<u64>, crate::Action)>,
    /// Every template that an owner had.
    pub(crate) templates: Vec<template::Template>,
    /// How often something has come that may undo an action: a late request, or an annotation of a person.
    pub(crate) changes_of_others: usize,
    count: u64,
    /// Every request to a manager, in order.
    pub(crate) judged: Vec<Judgement>,
    /// Every event created.
    pub(crate) events: Vec<(u64, crate::Event)>,
    /// What happened since the page was last written.
    pub(crate) lines: Vec<(u64, &'static str, String)>,
}

impl World {
    /// A green cluster in which every node runs on its config. Nodes by name and roles:
    /// `master+data`, or `data@a` in zone a.
    pub(crate) fn new(nodes: &[(&str, &str)]) -> Self {
        let roles = nodes.iter().map(|(name, what)| {
            let (roles, zone) = match what.split_once('@') {
                Some((roles, zone)) => (roles, Some(zone.to_owned())),
                None => (*what, None),
            };
            let roles = roles.split('+').map(str::to_owned).collect();
            ((*name).to_owned(), Role { roles, zone })
        });
        let mut world = Self {
            now: START,
            object: Object::new("search/logs"),
            pods: nodes.iter().map(|(name, _)| SimPod::new(name, 1, "v1", START)).collect(),
            selects_nothing: false,
            engine: Searching::new(roles.collect()),
            configs: BTreeMap::new(),
            looked_at: None,
            late: BTreeMap::new(),
            templates: vec![template::first()],
            changes_of_others: 0,
            count: 0,
            judged: Vec::new(),
            events: Vec::new(),
            lines: Vec::new(),
        };
        world.engine.shards.recovery = 4_000;
        let data: Vec<&str> = nodes
            .iter()
            .filter(|(_, roles)| roles.contains("data"))
            .map(|(name, _)| *name)
            .collect();
        let zone = |node: &str| world.engine.roles[node].zone.clone();
        let has_zones = data.iter().any(|node| zone(node).is_some());
        let shards = if has_zones { data.len() } else { data.len().min(3) };
        let mut logs = Vec::new();
        for shard in 0..shards {
            let mut holders: Vec<&str> = data.clone();
            holders.rotate_left(shard);
            // The replica is in another zone, if there is one.
            let primary = zone(holders[0]);
            if let Some(other) = holders.iter().position(|node| zone(node) != primary) {
                holders.swap(1, other);
            }
            holders.truncate(2);
            logs.push(holders);
        }
        for (shard, holders) in logs.into_iter().enumerate() {
            world.engine.shards.add("logs", u32::try_from(shard).unwrap(), &holders);
        }
        world.settle();
        world
    }

    /// A new number.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn pod(&mut self, name: &str) -> &mut SimPod {
        let found = self.pods.iter_mut().find(|pod| pod.name == name);
        found.unwrap_or_else(|| panic!("there is no pod {name}"))
    }

    pub(crate) fn by_uid(&mut self, uid: &str) -> Option<&mut SimPod> {
        self.pods.iter_mut().find(|pod| pod.uid == uid)
    }

    pub(crate) fn happened(&mut self, who: &'static str, what: impl Into<String>) {
        self.lines.push((self.now, who, what.into()));
    }

    /// Updates everything that depends on the current state.
    pub(crate) fn settle(&mut self) {
        let now = self.now;
        if self.object.sync() {
            self.happened("tool", "writes its phase on the SearchCluster");
        }
        for pod in &mut self.pods {
            pod.is_seen_by_its_operator(now);
            pod.follow_drain(now);
            pod.apply_phase(now);
        }
        let up = self
            .pods
            .iter()
            .filter(|pod| !pod.gone && !pod.living.is_without_container())
            .filter_map(|pod| {
                let run = pod.machine.up(now).filter(|_| pod.machine.joins())?;
                Some((pod.name.clone(), run.to_owned()))
            });
        let up: BTreeMap<String, String> = up.collect();
        let silent = self.pods.iter().filter(|pod| !pod.gone && pod.machine.is_silent());
        self.engine.silent = silent.map(|pod| pod.name.clone()).collect();
        self.engine.settle(now, &up);
    }

    /// When the next event happens by itself.
    pub(crate) fn next(&self) -> Option<u64> {
        let of_pods = self.pods.iter().filter_map(|pod| pod.next(self.now));
        let late = self.late.keys().next().map(|(at, _)| *at);
        of_pods.chain(self.engine.next(self.now)).chain(late).min()
    }

    /// Time passes until then, with all events in between.
    pub(crate) fn advance(&mut self, until: u64) {
        while let Some(at) = self.next().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.happen();
        }
        self.now = self.now.max(until);
        self.settle();
    }

    /// Handles the events that are due.
    fn happen(&mut self) {
        let now = self.now;
        for pod in &mut self.pods {
            pod.happen(now);
        }
        while let Some((&key, _)) = self.late.first_key_value().filter(|((at, _), _)| *at <= now) {
            if let Some((version, action)) = self.late.remove(&key) {
                self.changes_of_others += 1;
                self.happened(
                    "late",
                    format!("a request arrives: {}", perform::describe_action(&action)),
                );
                let same = version == self.named_version(&action);
                if same {
                    self.carry_out(&action);
                }
            }
        }
        self.settle();
    }

    /// The snapshot that the reconciler would read now, and the version of the SearchCluster in it.
    pub(crate) fn observe(&mut self, flushed: &BTreeSet<String>) -> (Snapshot, u64) {
        let fresh = self.fresh();
        let now = self.now;
        self.pods.iter_mut().for_each(|pod| pod.is_looked_for(now));
        let listed = self.pods.iter().filter(|pod| pod.is_listed());
        let not_read = Unknown { message: "the engine was not asked".into() };
        let mut snapshot = Snapshot {
            now: Time(now),
            jumped: 0,
            fresh_id: format!("fresh-{fresh}"),
            cluster: self.object.cluster_at(Time(now)),
            ledger: self.object.ledger.clone(),
            pods: listed.map(|pod| pod.observe(now)).collect(),
            configs: self.known_configs(),
            engine: Err(not_read),
            no_master: false,
            missing: vec![],
            node_sets: None,
            flushed: flushed.clone(),
        };
        if self.selects_nothing {
            let there = |uid: &&str| self.pods.iter().any(|pod| !pod.gone && pod.uid == **uid);
            let owed = snapshot.ledger.owed_pods().filter(there).map(str::to_owned);
            snapshot.cluster.unselected = owed.collect();
        }
        for pod in &mut snapshot.pods {
            let patch = to_be_set_back(&snapshot.ledger, pod);
            let living = self.pods.iter().find(|one| one.uid == pod.uid).map(|one| &one.living);
            pod.unreturnable = patch.zip(living).and_then(|(patch, living)| {
                let why = living.why_it_is_not_set_back(&patch)?;
                Some(Box::new(Unreturnable { patch, why }))
            });
        }
        if reads_engine(&snapshot) || self.finds_leftovers() {
            snapshot.engine = self.engine.observe(now);
            let answers = self.pods.iter().any(|pod| !pod.gone && pod.machine.up(now).is_some());
            snapshot.no_master = self.engine.has_no_master() && answers;
        }
        (snapshot, self.object.version)
    }

    /// What the sources have now.
    fn known_configs(&self) -> crate::KnownConfigs {
        let mut known = crate::KnownConfigs::default();
        for pod in self.pods.iter().filter(|pod| !pod.gone && !pod.unlisted) {
            if let crate::Sources::Checksum(checksum) = &pod.sources
                && let Some(settings) = self.configs.get(checksum)
            {
                known.add(checksum, settings);
            }
        }
        known
    }

    /// The look of a reconciler at rest: at the beginning, then every minute, and again at once when
    /// it has found something.
    fn finds_leftovers(&mut self) -> bool {
        if self.looked_at.is_some_and(|at| self.now - at < LOOK_INTERVAL) {
            return false;
        }
        self.looked_at = Some(self.now);
        let found = self.engine.observe(self.now).is_ok_and(|engine| {
            let records = engine.records.ok().flatten().unwrap_or_default();
            engine.allocation.is_ok_and(|allocation| {
                has_leftovers(&self.object.cluster.name, &self.object.ledger, &allocation, &records)
            })
        });
        if found {
            self.looked_at = None;
        }
        found
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.object.ledger
    }
}
