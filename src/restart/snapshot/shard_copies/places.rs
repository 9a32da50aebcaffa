//! Where copies are found in their list: by shard, and by node. Built once, when they are observed,
//! because every look asks for them.

use super::NumberedCopy;

/// Places of copies and shards. Lists that belong together are kept in one piece.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Places {
    /// For each shard the place of its first copy; at the end the number of copies.
    first_copy: Vec<u32>,
    /// The shards with a started copy on a node, node after node.
    started: Vec<u32>,
    /// For each node the place of its first shard in `started`; at the end their number.
    first_started: Vec<u32>,
}

impl Places {
    /// Of copies that are sorted by shard, on so many nodes.
    pub(super) fn of(copies: &[NumberedCopy], nodes: usize) -> Self {
        let mut first_copy = vec![0];
        for shard in by_shard(copies) {
            first_copy.push(end(&first_copy) + count(shard.len()));
        }
        // Counted first, so that each shard is written to its place.
        let mut first_started = vec![0; nodes + 1];
        for node in started_nodes(copies) {
            first_started[node + 1] += 1;
        }
        for node in 0..nodes {
            first_started[node + 1] += first_started[node];
        }
        let mut next = first_started.clone();
        let mut started = vec![0; end(&first_started) as usize];
        for (shard, number) in by_shard(copies).zip(0..) {
            for node in started_nodes(shard) {
                started[next[node] as usize] = number;
                next[node] += 1;
            }
        }
        Self { first_copy, started, first_started }
    }

    /// Where the copies of this shard are.
    pub(super) fn copies_of(&self, shard: u32) -> std::ops::Range<usize> {
        range(&self.first_copy, shard as usize)
    }

    /// The shards with a started copy on this node.
    pub(super) fn started_on(&self, node: usize) -> &[u32] {
        &self.started[range(&self.first_started, node)]
    }
}

fn by_shard(copies: &[NumberedCopy]) -> impl Iterator<Item = &[NumberedCopy]> {
    copies.chunk_by(|one, other| (one.index, one.shard) == (other.index, other.shard))
}

fn started_nodes(copies: &[NumberedCopy]) -> impl Iterator<Item = usize> {
    copies.iter().filter(|copy| copy.started).filter_map(NumberedCopy::node)
}

fn range(first: &[u32], of: usize) -> std::ops::Range<usize> {
    first[of] as usize..first[of + 1] as usize
}

fn end(first: &[u32]) -> u32 {
    first.last().copied().unwrap_or(0)
}

/// No engine has more copies than that.
fn count(copies: usize) -> u32 {
    u32::try_from(copies).unwrap_or(u32::MAX)
}
