//! Shard copies: no stop takes away the last one that can answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::restart::gate::{Gate, refuse};
use crate::restart::{Code, Engine, ShardCopy, Unknown};

/// Where the copies of every shard are, arranged once for all candidates.
#[derive(Debug)]
pub(in crate::restart) struct Copies<'a> {
    /// The nodes in the cluster, by name.
    nodes: BTreeMap<&'a str, Holder>,
    shards: Result<Vec<Shard<'a>>, &'a Unknown>,
}

/// A node, as far as shards go.
#[derive(Debug, Default)]
struct Holder {
    /// It told roles, and none of them holds data.
    never: bool,
    /// Which shards it has a started copy of: places in [`Copies::shards`].
    started: Vec<usize>,
}

/// One shard.
#[derive(Debug)]
struct Shard<'a> {
    index: &'a str,
    number: u32,
    /// It has one copy only, started or not: its index has no replicas.
    single: bool,
    /// Names of the listed nodes with a started copy.
    started: Vec<&'a str>,
}

impl<'a> Copies<'a> {
    /// Arranges them: n log n in the number of copies, linear if they come sorted by index and shard.
    pub(in crate::restart) fn of(engine: &'a Engine) -> Self {
        let mut nodes: BTreeMap<&str, Holder> = BTreeMap::new();
        for node in &engine.nodes {
            let never = !node.holds_data() && !node.roles.is_empty();
            // Where two nodes bear the name, one that may hold data decides.
            nodes
                .entry(&node.name)
                .and_modify(|holder| holder.never &= never)
                .or_insert(Holder { never, started: Vec::new() });
        }
        let shards = engine.shards.as_ref().map(|copies| {
            let mut sorted: Vec<&ShardCopy> = copies.iter().collect();
            sorted.sort_by(|a, b| (&a.index, a.shard).cmp(&(&b.index, b.shard)));
            sorted
                .chunk_by(|a, b| a.shard == b.shard && a.index == b.index)
                .enumerate()
                .map(|(place, group)| Shard::of(group, place, &mut nodes))
                .collect()
        });
        Self { nodes, shards }
    }

    /// Passes if of every shard with a started copy on the candidate another started copy is on a
    /// listed node that is neither `down` nor the candidate. Replicas count as primaries do: what is
    /// asked is what would be left. The work is that of the copies on the candidate.
    pub(in crate::restart) fn gate(
        &self,
        candidate: &str,
        down: &BTreeSet<String>,
        allow_outage: bool,
    ) -> Gate {
        if allow_outage {
            return Ok(());
        }
        let holder = self.nodes.get(candidate);
        let shards = match &self.shards {
            Ok(shards) => shards,
            // A node that is not listed may hold shards for all we know.
            Err(_) if holder.is_some_and(|holder| holder.never) => return Ok(()),
            Err(unknown) => {
                return refuse(
                    Code::EngineUnreachable,
                    format!(
                        "{candidate} is not stopped while it is not known which shards it holds: {}",
                        unknown.sentence
                    ),
                );
            }
        };
        let survives = |shard: &Shard<'_>| {
            shard.started.iter().any(|node| *node != candidate && !down.contains(*node))
        };
        let lost: Vec<&Shard<'_>> = holder
            .map_or(&[] as &[usize], |holder| &holder.started)
            .iter()
            .map(|place| &shards[*place])
            .filter(|shard| !survives(shard))
            .collect();
        // An index without replicas will not pass by waiting, so it is told first.
        match (lost.iter().find(|shard| shard.single), lost.first()) {
            (Some(shard), _) => refuse(
                Code::UnreplicatedIndex,
                format!(
                    "{candidate} holds the only copy of shard {} of {}, which has no replica{}: \
                     give it one (index.number_of_replicas), or set spec.restart.allowOutage: true \
                     to do without it until the node is back",
                    shard.number,
                    shard.index,
                    others(lost.len())
                ),
            ),
            (None, Some(shard)) => refuse(
                Code::LastCopy,
                format!(
                    "{candidate} holds the last started copy of shard {} of {}{}: waits until \
                     another is started on a node that stays up",
                    shard.number,
                    shard.index,
                    others(lost.len())
                ),
            ),
            (None, None) => Ok(()),
        }
    }
}

impl<'a> Shard<'a> {
    /// From its copies, of which there is at least one; notes its place with their holders.
    fn of(copies: &[&'a ShardCopy], place: usize, nodes: &mut BTreeMap<&'a str, Holder>) -> Self {
        let mut shard = Self {
            index: &copies[0].index,
            number: copies[0].shard,
            single: copies.len() == 1,
            started: Vec::new(),
        };
        for name in copies.iter().filter(|copy| copy.started).filter_map(|copy| copy.node.as_ref())
        {
            if let Some(holder) = nodes.get_mut(name.as_str()) {
                holder.started.push(place);
                shard.started.push(name);
            }
        }
        shard
    }
}

/// How many more shards there are than the one that is named.
fn others(lost: usize) -> String {
    match lost {
        0 | 1 => String::new(),
        2 => " (1 more shard would be without one, too)".to_owned(),
        _ => format!(" ({} more shards would be without one, too)", lost - 1),
    }
}
