//! Which node holds which shard copies: no stop takes the last started copy of a shard.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lookup::Lookup;
use crate::{Engine, ShardCopy, Unknown};

/// Numbers of nodes by name. Read once per copy, and there can be a million copies.
type NodeNumbers<'a> = Lookup<'a, usize>;

/// The shard copies of every node, built once for all candidates.
#[derive(Debug)]
pub(crate) struct Copies<'a> {
    numbers: NodeNumbers<'a>,
    /// The nodes in the cluster, by number.
    nodes: Vec<Holder<'a>>,
    table: Result<Table<'a>, &'a Unknown>,
}

/// A node that may hold shard copies.
#[derive(Debug)]
struct Holder<'a> {
    name: &'a str,
    /// By its roles.
    holds_no_data: bool,
    /// The shards it has a started copy of: positions in [`Table::shards`].
    started: Vec<usize>,
}

/// All shards, and in one piece the nodes that hold them.
#[derive(Debug, Default)]
struct Table<'a> {
    shards: Vec<Shard<'a>>,
    /// Numbers of the listed nodes with a started copy, shard after shard.
    holders: Vec<usize>,
}

#[derive(Debug)]
struct Shard<'a> {
    name: ShardName<'a>,
    /// It has only one copy, started or not: its index has no replicas.
    single: bool,
    /// Its part of [`Table::holders`].
    holders: Range<usize>,
}

impl<'a> Copies<'a> {
    /// Takes linear time if the copies come sorted by index and shard.
    pub(crate) fn of(engine: &'a Engine) -> Self {
        let mut numbers = NodeNumbers::default();
        let mut nodes: Vec<Holder<'_>> = Vec::with_capacity(engine.nodes.len());
        for node in &engine.nodes {
            let holds_no_data = !node.holds_data();
            let number = *numbers.entry(&*node.name).or_insert(nodes.len());
            match nodes.get_mut(number) {
                // If two nodes have the same name, one that may hold data decides.
                Some(holder) => holder.holds_no_data &= holds_no_data,
                None => nodes.push(Holder { name: &node.name, holds_no_data, started: Vec::new() }),
            }
        }
        let table = engine.shards.as_ref().map(|copies| {
            let mut sorted: Vec<&ShardCopy> = copies.iter().collect();
            sorted.sort_by(|a, b| (&a.index, a.shard).cmp(&(&b.index, b.shard)));
            let mut table = Table::default();
            for group in sorted.chunk_by(|a, b| a.shard == b.shard && a.index == b.index) {
                table.add(group, &numbers, &mut nodes);
            }
            table
        });
        Self { numbers, nodes, table }
    }

    /// The shards that would have no started copy on a listed node without the candidate and the
    /// nodes that are `down`. Replicas count as primaries do. The work is proportional to the copies
    /// on the candidate.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn lost(
        &self,
        candidate: &str,
        down: &BTreeSet<String>,
    ) -> Result<Lost<'a>, &'a Unknown> {
        let number = self.numbers.get(candidate).copied();
        let holder = number.map(|number| &self.nodes[number]);
        let table = match &self.table {
            Ok(table) => table,
            // A node that is not listed may hold shards.
            Err(_) if holder.is_some_and(|holder| holder.holds_no_data) => {
                return Ok(Lost::default());
            }
            Err(unknown) => return Err(unknown),
        };
        let stays = |other: usize| !down.contains(self.nodes[other].name);
        let survives = |shard: &Shard<'_>| {
            table.holders[shard.holders.clone()]
                .iter()
                .any(|other| Some(*other) != number && stays(*other))
        };
        let mut lost = Lost::default();
        for place in holder.into_iter().flat_map(|holder| &holder.started) {
            let shard = &table.shards[*place];
            if !survives(shard) {
                let list = if shard.single { &mut lost.single } else { &mut lost.replicated };
                list.push(shard.name);
            }
        }
        Ok(lost)
    }

    /// A shard of which the candidate and one of the `others` hold a started copy, and the name of
    /// that other node.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn shared(
        &self,
        candidate: &str,
        others: &BTreeSet<String>,
    ) -> Result<Option<(String, &'a str)>, &'a Unknown> {
        let number = self.numbers.get(candidate).copied();
        let holder = number.map(|number| &self.nodes[number]);
        let table = match &self.table {
            Ok(table) => table,
            Err(_) if holder.is_some_and(|holder| holder.holds_no_data) => return Ok(None),
            Err(unknown) => return Err(unknown),
        };
        let among = |other: usize| Some(other) != number && others.contains(self.nodes[other].name);
        let shards = holder.into_iter().flat_map(|holder| &holder.started);
        Ok(shards.map(|place| &table.shards[*place]).find_map(|shard| {
            let mut holders = table.holders[shard.holders.clone()].iter();
            let other = holders.find(|other| among(**other))?;
            Some((shard.name.to_string(), self.nodes[*other].name))
        }))
    }
}

/// Shards that a stop would leave without a started copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lost<'a> {
    /// Shards with other copies, none of them started on a node that stays.
    pub(crate) replicated: Vec<ShardName<'a>>,
    /// Shards with only one copy: their index has no replicas.
    pub(crate) single: Vec<ShardName<'a>>,
}

/// A shard, of whichever node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardName<'a> {
    pub(crate) index: &'a str,
    number: u32,
}

/// `shard 0 of events`.
impl std::fmt::Display for ShardName<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "shard {} of {}", self.number, self.index)
    }
}

impl<'a> Table<'a> {
    /// Adds a shard with its copies, at least one.
    fn add(
        &mut self,
        copies: &[&'a ShardCopy],
        numbers: &NodeNumbers<'_>,
        nodes: &mut [Holder<'_>],
    ) {
        let place = self.shards.len();
        let first = self.holders.len();
        let started = copies.iter().filter(|copy| copy.started);
        for name in started.filter_map(|copy| copy.node.as_deref()) {
            if let Some(number) = numbers.get(name) {
                nodes[*number].started.push(place);
                self.holders.push(*number);
            }
        }
        self.shards.push(Shard {
            name: ShardName { index: &copies[0].index, number: copies[0].shard },
            single: copies.len() == 1,
            holders: first..self.holders.len(),
        });
    }
}
