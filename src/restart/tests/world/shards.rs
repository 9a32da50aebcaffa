//! Simulated shard copies: unassigned when their node leaves, started again when it returns, created
//! elsewhere if allocation allows it.

use std::collections::BTreeSet;

use crate::{Color, Health, ShardCopy};

/// The time until a copy whose node left is created elsewhere, in milliseconds.
const DELAY: u64 = 60_000;

#[derive(Debug, Clone)]
struct Copy {
    index: String,
    shard: u32,
    primary: bool,
    /// Its node, also while it is being created.
    node: Option<String>,
    /// When it is started; none while it is unassigned.
    started_at: Option<u64>,
    /// Its last node, and when it left.
    left: Option<(String, u64)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Shards {
    copies: Vec<Copy>,
    /// How long it takes to create a copy.
    pub(crate) recovery: u64,
    data_nodes: BTreeSet<String>,
}

impl Shards {
    /// An index with copies on these nodes, the first one the primary.
    pub(crate) fn add(&mut self, index: &str, shard: u32, nodes: &[&str]) {
        for (at, node) in nodes.iter().enumerate() {
            self.copies.push(Copy {
                index: index.to_owned(),
                shard,
                primary: at == 0,
                node: Some((*node).to_owned()),
                started_at: Some(0),
                left: None,
            });
        }
    }

    /// A started copy on this node fails by itself, a replica if there is one. Whether it is created
    /// again is decided by the allocation setting.
    pub(crate) fn fail_one(&mut self, now: u64, node: &str) {
        let failing = |copy: &&mut Copy| {
            copy.node.as_deref() == Some(node) && copy.started_at.is_some_and(|at| at <= now)
        };
        let here = self.copies.iter_mut().filter(failing);
        if let Some(copy) = here.min_by_key(|copy| copy.primary) {
            copy.node = None;
            copy.started_at = None;
            copy.left = Some((node.to_owned(), now));
        }
    }

    pub(crate) fn settle(&mut self, now: u64, data: &BTreeSet<String>, setting: Option<&str>) {
        self.data_nodes = data.clone();
        for copy in &mut self.copies {
            if let Some(node) = copy.node.take_if(|node| !data.contains(node)) {
                // A copy that was never built has left nothing behind.
                let built = copy.started_at.is_some_and(|at| at <= now);
                if built || copy.primary || copy.left.is_none() {
                    copy.left = Some((node, now));
                }
                copy.started_at = None;
            }
        }
        self.promote(now);
        let replicas = setting.is_none_or(|setting| setting == "all");
        let primaries = replicas || setting == Some("primaries");
        for at in 0..self.copies.len() {
            let copy = &self.copies[at];
            if copy.node.is_some() || !(if copy.primary { primaries } else { replicas }) {
                continue;
            }
            if let Some(node) = self.place_for(at, now, data) {
                let recovery = self.recovery;
                let copy = &mut self.copies[at];
                copy.node = Some(node);
                copy.started_at = Some(now + recovery);
                copy.left = None;
            }
        }
    }

    fn place_for(&self, at: usize, now: u64, data: &BTreeSet<String>) -> Option<String> {
        let copy = &self.copies[at];
        let same = |other: &&Copy| other.index == copy.index && other.shard == copy.shard;
        let (last, since) = copy.left.as_ref()?;
        let siblings: Vec<&Copy> = self.copies.iter().filter(same).collect();
        let holds = |node: &String| siblings.iter().any(|other| other.node.as_ref() == Some(node));
        let last = Some(last).filter(|last| data.contains(*last) && !holds(last)).cloned();
        if copy.primary {
            return last;
        }
        // A replica is copied from its primary.
        let has_source = siblings
            .iter()
            .any(|other| other.primary && other.started_at.is_some_and(|at| at <= now));
        if !has_source || last.is_some() {
            return last.filter(|_| has_source);
        }
        (now >= since + DELAY).then(|| data.iter().find(|node| !holds(node)).cloned()).flatten()
    }

    /// A started replica replaces an unassigned primary.
    fn promote(&mut self, now: u64) {
        for at in 0..self.copies.len() {
            if !self.copies[at].primary || self.copies[at].node.is_some() {
                continue;
            }
            let (index, shard) = (self.copies[at].index.clone(), self.copies[at].shard);
            let other = self.copies.iter().position(|other| {
                other.index == index
                    && other.shard == shard
                    && !other.primary
                    && other.started_at.is_some_and(|at| at <= now)
            });
            if let Some(other) = other {
                self.copies[at].primary = false;
                self.copies[other].primary = true;
            }
        }
    }

    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let built = self.copies.iter().filter_map(|copy| copy.started_at);
        let given_up = self
            .copies
            .iter()
            .filter_map(|copy| copy.left.as_ref().map(|(_, since)| since + DELAY));
        built.chain(given_up).filter(|at| *at > now).min()
    }

    pub(crate) fn copies(&self, now: u64) -> Vec<ShardCopy> {
        let shown = |copy: &Copy| ShardCopy {
            index: copy.index.clone(),
            shard: copy.shard,
            primary: copy.primary,
            search_only: false,
            started: copy.node.is_some() && copy.started_at.is_some_and(|at| at <= now),
            node: copy.node.clone(),
        };
        self.copies.iter().map(shown).collect()
    }

    pub(crate) fn health(&self, now: u64, data_nodes: u32) -> Health {
        let count = |wanted: &dyn Fn(&&Copy) -> bool| {
            u32::try_from(self.copies.iter().filter(wanted).count()).unwrap()
        };
        let is_started =
            |copy: &&Copy| copy.node.is_some() && copy.started_at.is_some_and(|at| at <= now);
        let color = if self.copies.iter().any(|copy| copy.primary && !is_started(&copy)) {
            Color::Red
        } else if self.copies.iter().all(|copy| is_started(&copy)) {
            Color::Green
        } else {
            Color::Yellow
        };
        Health {
            color,
            timed_out: false,
            data_nodes,
            initializing: count(&|copy| copy.node.is_some() && !is_started(copy)),
            relocating: 0,
            unassigned: count(&|copy| copy.node.is_none()),
            delayed: count(&|copy| {
                copy.node.is_none()
                    && copy.left.as_ref().is_some_and(|(node, since)| {
                        !self.data_nodes.contains(node) && now < since + DELAY
                    })
            }),
            in_flight_fetch: 0,
        }
    }
}
