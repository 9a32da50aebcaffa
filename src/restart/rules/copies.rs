//! Which node holds which shard copies: no stop takes the last started copy of a shard.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lookup::Lookup;
use crate::{Engine, ShardCopies, Unknown};

/// The shard copies of every node, built once for all candidates.
#[derive(Debug)]
pub(crate) struct Copies<'a> {
    /// Numbers of the nodes by name.
    numbers: Lookup<'a, usize>,
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
    /// It is down, or may be at any moment because of us.
    is_down: bool,
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
    /// Takes time in proportion to the copies; no name is compared but those of the nodes, once.
    pub(crate) fn of(engine: &'a Engine, down: &BTreeSet<String>) -> Self {
        let mut numbers: Lookup<'_, usize> = Lookup::default();
        let mut nodes: Vec<Holder<'_>> = Vec::with_capacity(engine.nodes.len());
        for node in &engine.nodes {
            let holds_no_data = !node.holds_data();
            let number = *numbers.entry(&*node.name).or_insert(nodes.len());
            match nodes.get_mut(number) {
                // If two nodes have the same name, one that may hold data decides.
                Some(holder) => holder.holds_no_data &= holds_no_data,
                None => nodes.push(Holder {
                    name: &node.name,
                    holds_no_data,
                    is_down: down.contains(&node.name),
                    started: Vec::new(),
                }),
            }
        }
        let table = engine.shards.as_ref().map(|copies| Table::of(copies, &numbers, &mut nodes));
        Self { numbers, nodes, table }
    }

    /// From now on the node counts as down, or no longer.
    pub(crate) fn set_down(&mut self, node: &str, is_down: bool) {
        if let Some(number) = self.numbers.get(node) {
            self.nodes[*number].is_down = is_down;
        }
    }

    /// The shards that would have no started copy on a listed node without the candidate and the
    /// nodes that are down. Replicas count as primaries do. The work is proportional to the copies
    /// on the candidate.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn lost(&self, candidate: &str) -> Result<Lost<'a>, &'a Unknown> {
        let Some((table, number, holder)) = self.find(candidate)? else {
            return Ok(Lost::default());
        };
        let survives = |shard: &Shard<'_>| {
            let mut holders = table.holders[shard.holders.clone()].iter();
            holders.any(|other| *other != number && !self.nodes[*other].is_down)
        };
        let mut lost = Lost::default();
        for place in &holder.started {
            let shard = &table.shards[*place];
            match survives(shard) {
                true => {}
                false if shard.single => lost.single.push(shard.name),
                false => {
                    lost.first_replicated.get_or_insert(shard.name);
                    lost.replicated += 1;
                }
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
        let Some((table, number, holder)) = self.find(candidate)? else { return Ok(None) };
        let others: BTreeSet<usize> =
            others.iter().filter_map(|other| self.numbers.get(other.as_str()).copied()).collect();
        let shards = holder.started.iter().map(|place| &table.shards[*place]);
        Ok(shards.into_iter().find_map(|shard| {
            let mut holders = table.holders[shard.holders.clone()].iter();
            let other = holders.find(|other| **other != number && others.contains(other))?;
            Some((shard.name.to_string(), self.nodes[*other].name))
        }))
    }

    /// The shards, and the number and the copies of this node; none if it holds none.
    fn find(
        &self,
        candidate: &str,
    ) -> Result<Option<(&Table<'a>, usize, &Holder<'a>)>, &'a Unknown> {
        let number = self.numbers.get(candidate).copied();
        let found = number.map(|number| (number, &self.nodes[number]));
        match &self.table {
            Ok(table) => Ok(found.map(|(number, holder)| (table, number, holder))),
            Err(_) if found.is_some_and(|(_, holder)| holder.holds_no_data) => Ok(None),
            // A node that is not listed may hold shards.
            Err(unknown) => Err(unknown),
        }
    }
}

/// Shards that a stop would leave without a started copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lost<'a> {
    /// The first shard with other copies, none of them started on a node that stays.
    pub(crate) first_replicated: Option<ShardName<'a>>,
    /// How many such shards there are.
    pub(crate) replicated: usize,
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
    fn of(copies: &'a ShardCopies, numbers: &Lookup<'_, usize>, nodes: &mut [Holder<'_>]) -> Self {
        let number_of: Vec<Option<usize>> =
            copies.nodes().iter().map(|name| numbers.get(&**name).copied()).collect();
        let mut table = Self { shards: Vec::new(), holders: Vec::with_capacity(copies.len()) };
        for shard in copies.shards() {
            let place = table.shards.len();
            let first = table.holders.len();
            let started = shard.iter().filter(|copy| copy.started);
            for number in started.filter_map(|copy| number_of[copy.node()?]) {
                nodes[number].started.push(place);
                table.holders.push(number);
            }
            table.shards.push(Shard {
                name: ShardName { index: copies.index(&shard[0]), number: shard[0].shard() },
                single: shard.len() == 1,
                holders: first..table.holders.len(),
            });
        }
        table
    }
}
