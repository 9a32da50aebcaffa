//! Knows which node holds which shard copies: no stop may take the last started copy of a shard.

use std::collections::BTreeSet;

use crate::index::{Lookup, OwnedNameSet, with_room};
use crate::snapshot::{NumberedCopy, Others};
use crate::{Engine, ShardCopies, Unknown};

/// The shard copies of every node, and which of the nodes stay.
#[derive(Debug)]
pub(crate) struct Copies<'a> {
    /// The nodes in the cluster, by name.
    nodes: Lookup<'a, Holder>,
    table: Result<Table<'a>, &'a Unknown>,
}

/// A node that may hold shard copies.
#[derive(Debug)]
struct Holder {
    /// True if no role of the node holds data.
    holds_no_data: bool,
    /// Number of the node in the table, if the node has copies there.
    number: Option<usize>,
}

/// All shard copies. `stays`, by the number of the node: true if the node is in the cluster, is not down, and
/// cannot go down at any moment because of us.
#[derive(Debug)]
struct Table<'a> {
    copies: &'a ShardCopies,
    stays: Vec<bool>,
}

impl<'a> Copies<'a> {
    /// Indexes the copies by node, in time proportional to the nodes, not to the copies. `down`: nodes that
    /// do not stay.
    pub(crate) fn of(engine: &'a Engine, down: &OwnedNameSet) -> Self {
        let mut nodes: Lookup<'_, Holder> = with_room(engine.nodes.len());
        for node in &engine.nodes {
            let holder = nodes.entry(&*node.name);
            let holder = holder.or_insert(Holder { holds_no_data: true, number: None });
            // If two nodes have the same name, one that may hold data decides.
            holder.holds_no_data &= !node.holds_data();
        }
        let table = engine.shards.as_ref().map(|copies| {
            let mut stays = Vec::with_capacity(copies.nodes().len());
            for (name, number) in copies.nodes().iter().zip(0..) {
                let holder = nodes.get_mut(&**name);
                stays.push(holder.is_some() && !down.contains(&**name));
                if let Some(holder) = holder {
                    holder.number = Some(number);
                }
            }
            Table { copies, stays }
        });
        Self { nodes, table }
    }

    /// Counts the node as down from now on.
    pub(crate) fn set_down(&mut self, node: &str) {
        let number = self.nodes.get(node).and_then(|holder| holder.number);
        if let (Some(number), Ok(table)) = (number, &mut self.table) {
            table.stays[number] = false;
        }
    }

    /// The shards that have other copies, and would have no started one on a listed node without the
    /// candidate and the nodes that are down. Replicas count as primaries do, search replicas not at
    /// all. The work is proportional to the copies on the candidate.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn lost(&self, candidate: &str) -> Result<Lost<'a>, &'a Unknown> {
        let mut lost = Lost::default();
        let Some((table, number)) = self.find(candidate)? else { return Ok(lost) };
        for replica in table.copies.replicated_on(number) {
            // All copies are read only where the answer needs it: they are far apart in memory.
            let copies = || table.copies.of_shard(replica.shard);
            let has_another = match replica.others() {
                Others::None => false,
                Others::One(other) => table.stays[other],
                Others::Several => table.others(copies(), number).any(|other| table.stays[other]),
            };
            if !has_another {
                lost.first.get_or_insert_with(|| table.name(&copies()[0]));
                lost.number += 1;
            }
        }
        Ok(lost)
    }

    /// The shards of which the candidate has the only copy: their indices have no replicas.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn single(
        &self,
        candidate: &str,
    ) -> Result<impl Iterator<Item = ShardName<'a>>, &'a Unknown> {
        let found = self.find(candidate)?;
        Ok(found.into_iter().flat_map(|(table, number)| {
            let shards = table.copies.single_on(number).iter();
            shards.map(|shard| table.name(&table.copies.of_shard(*shard)[0]))
        }))
    }

    /// A shard of which the candidate and one of the `others` hold a started copy, and the name of
    /// that other node. Two search replicas count, too: while both are down nobody searches.
    ///
    /// # Errors
    /// The copies are unknown, and the candidate may hold data.
    pub(crate) fn shared(
        &self,
        candidate: &str,
        others: &OwnedNameSet,
    ) -> Result<Option<(String, &'a str)>, &'a Unknown> {
        let Some((table, number)) = self.find(candidate)? else { return Ok(None) };
        let number_of = |other: &String| self.nodes.get(other.as_str())?.number;
        let others: BTreeSet<usize> = others.iter().filter_map(number_of).collect();
        let shards = table.copies.replicated_on(number).iter().map(|replica| &replica.shard);
        let shards = shards.chain(table.copies.searched_on(number));
        Ok(shards.map(|shard| table.copies.of_shard(*shard)).find_map(|copies| {
            let mut found = table.others(copies, number);
            let other = found.find(|other| others.contains(other))?;
            Some((table.name(&copies[0]).to_string(), &*table.copies.nodes()[other]))
        }))
    }

    /// The table, and the number of this node in it, if the node has copies.
    fn find(&self, candidate: &str) -> Result<Option<(&Table<'a>, usize)>, &'a Unknown> {
        let holder = self.nodes.get(candidate);
        match &self.table {
            Ok(table) => Ok(holder.and_then(|holder| Some((table, holder.number?)))),
            Err(_) if holder.is_some_and(|holder| holder.holds_no_data) => Ok(None),
            // A node that is not listed may hold shards.
            Err(unknown) => Err(unknown),
        }
    }
}

impl<'a> Table<'a> {
    /// Numbers of the other nodes, besides `node`, that hold a started one of these copies.
    fn others(&self, copies: &'a [NumberedCopy], node: usize) -> impl Iterator<Item = usize> + 'a {
        let started = copies.iter().filter(|copy| copy.started);
        started.filter_map(NumberedCopy::node).filter(move |other| *other != node)
    }

    fn name(&self, copy: &NumberedCopy) -> ShardName<'a> {
        ShardName { index: self.copies.index(copy), number: copy.shard() }
    }
}

/// Shards that a stop would leave without a started copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lost<'a> {
    pub(crate) first: Option<ShardName<'a>>,
    /// Number of shards that a stop would leave without a started copy.
    pub(crate) number: usize,
}

/// Index and number of a shard, without its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardName<'a> {
    pub(crate) index: &'a str,
    number: u32,
}

/// Writes the name as in `shard 0 of events`.
impl std::fmt::Display for ShardName<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "shard {} of {}", self.number, self.index)
    }
}
