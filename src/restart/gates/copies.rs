//! Shard copies: no stop takes away the last one that can answer.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::restart::gate::{Gate, refuse};
use crate::restart::lookup::Lookup;
use crate::restart::{Code, Engine, ShardCopy, Unknown};

/// Numbers of nodes by name. Looked up once per copy, of which there can be a million.
type Numbers<'a> = Lookup<'a, usize>;

/// Where the copies of every shard are, arranged once for all candidates.
#[derive(Debug)]
pub(in crate::restart) struct Copies<'a> {
    numbers: Numbers<'a>,
    /// The nodes in the cluster, by number.
    nodes: Vec<Holder<'a>>,
    table: Result<Table<'a>, &'a Unknown>,
}

/// A node, as far as shards go.
#[derive(Debug)]
struct Holder<'a> {
    name: &'a str,
    /// It told roles, and none of them holds data.
    never: bool,
    /// Which shards it has a started copy of: places in [`Table::shards`].
    started: Vec<usize>,
}

/// The shards and, in one piece, who holds them.
#[derive(Debug, Default)]
struct Table<'a> {
    shards: Vec<Shard<'a>>,
    /// Numbers of the listed nodes with a started copy, shard after shard.
    holders: Vec<usize>,
}

/// One shard.
#[derive(Debug)]
struct Shard<'a> {
    index: &'a str,
    number: u32,
    /// It has one copy only, started or not: its index has no replicas.
    single: bool,
    /// Its part of [`Table::holders`].
    holders: Range<usize>,
}

impl<'a> Copies<'a> {
    /// Arranges them: linear in the number of copies if they come sorted by index and shard.
    pub(in crate::restart) fn of(engine: &'a Engine) -> Self {
        let mut numbers = Numbers::default();
        let mut nodes: Vec<Holder<'_>> = Vec::with_capacity(engine.nodes.len());
        for node in &engine.nodes {
            let never = !node.holds_data() && !node.roles.is_empty();
            let number = *numbers.entry(&*node.name).or_insert(nodes.len());
            match nodes.get_mut(number) {
                // Where two nodes bear the name, one that may hold data decides.
                Some(holder) => holder.never &= never,
                None => nodes.push(Holder { name: &node.name, never, started: Vec::new() }),
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
        let number = self.numbers.get(candidate).copied();
        let holder = number.map(|number| &self.nodes[number]);
        let table = match &self.table {
            Ok(table) => table,
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
            let stays = |other: usize| !down.contains(self.nodes[other].name);
            table.holders[shard.holders.clone()]
                .iter()
                .any(|other| Some(*other) != number && stays(*other))
        };
        let lost: Vec<&Shard<'_>> = holder
            .into_iter()
            .flat_map(|holder| &holder.started)
            .map(|place| &table.shards[*place])
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

impl<'a> Table<'a> {
    /// Adds a shard by its copies, of which there is at least one.
    fn add(&mut self, copies: &[&'a ShardCopy], numbers: &Numbers<'_>, nodes: &mut [Holder<'_>]) {
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
            index: &copies[0].index,
            number: copies[0].shard,
            single: copies.len() == 1,
            holders: first..self.holders.len(),
        });
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
