//! Places of copies in their list: by shard, and by node. Built once, when they are observed, because
//! every decision uses them.

use super::NumberedCopy;

/// Places of copies and shards. The search replicas of a shard are a shard of their own here: they
/// stand in for each other, and for no copy that is written to, because they are never made the primary.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Places {
    /// For each shard the place of its first copy; at the end the number of copies.
    first_copy: Vec<u32>,
    /// Shards with a started copy on a node, and with other copies.
    replicated: ByNode<Replica>,
    /// Shards with a started copy on a node, and no other copy at all.
    single: ByNode<u32>,
    /// Shards with a started search replica on a node, with other ones, and with copies that are
    /// written to. An index that can only be searched has no such copies: its search replicas are in
    /// `replicated` and `single`.
    searched: ByNode<u32>,
    /// Places of primaries that are on no node.
    unassigned_primaries: Vec<u32>,
}

impl Places {
    /// Places of copies that are sorted by shard, on so many nodes.
    pub(super) fn of(copies: &[NumberedCopy], nodes: usize) -> Self {
        let mut first_copy = vec![0];
        for shard in by_shard(copies) {
            first_copy.push(end(&first_copy) + count(shard.len()));
        }
        let mut before: Option<&NumberedCopy> = None;
        let kinds: Vec<Kind> = by_shard(copies)
            .map(|shard| {
                let first = &shard[0];
                let follows = before.replace(first).is_some_and(|other| is_same(other, first));
                match (follows, shard.len()) {
                    (true, 1) => Kind::OnlySearched,
                    (true, _) => Kind::Searched,
                    (false, 1) => Kind::Single,
                    (false, _) => Kind::Replicated,
                }
            })
            .collect();
        let of_kind = |wanted: Kind| {
            let shards = by_shard(copies).zip(0..).zip(&kinds);
            shards.filter(move |(_, kind)| **kind == wanted).map(|(shard, _)| shard)
        };
        let started = |wanted: Kind| {
            of_kind(wanted)
                .flat_map(|(copies, shard)| started_nodes(copies).map(move |node| (node, shard)))
        };
        let replicas = of_kind(Kind::Replicated).flat_map(|(copies, shard)| {
            let nodes = started_nodes(copies);
            nodes.map(move |node| (node, Replica::of(shard, copies, node)))
        });
        let primaries = copies.iter().zip(0..).filter(|(copy, _)| !copy.replica);
        let unassigned = primaries.filter(|(copy, _)| copy.node.is_none());
        Self {
            first_copy,
            replicated: ByNode::of(replicas, nodes),
            single: ByNode::of(started(Kind::Single), nodes),
            searched: ByNode::of(started(Kind::Searched), nodes),
            unassigned_primaries: unassigned.map(|(_, place)| place).collect(),
        }
    }

    /// Places of the copies of this shard.
    pub(super) fn copies_of(&self, shard: u32) -> std::ops::Range<usize> {
        range(&self.first_copy, shard as usize)
    }

    /// The shards with a started copy on this node, and with other copies.
    pub(super) fn replicated_on(&self, node: usize) -> &[Replica] {
        self.replicated.on(node)
    }

    /// The shards of which the only copy is on this node, and started.
    pub(super) fn single_on(&self, node: usize) -> &[u32] {
        self.single.on(node)
    }

    /// The shards with a started search replica on this node, and with other ones.
    pub(super) fn searched_on(&self, node: usize) -> &[u32] {
        self.searched.on(node)
    }

    /// Places of primaries that are on no node.
    pub(super) fn unassigned_primaries(&self) -> &[u32] {
        &self.unassigned_primaries
    }
}

/// A shard with a started copy on a node, and the place of its other started copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Replica {
    pub(crate) shard: u32,
    /// Number of the node with the only other copy; or [`NONE`] or [`SEVERAL`].
    other: u32,
}

/// Value of [`Replica::other`]: there is no other started copy.
const NONE: u32 = u32::MAX;
/// Value of [`Replica::other`]: there are several other started copies.
const SEVERAL: u32 = u32::MAX - 1;

/// Place of the other started copies of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    None,
    /// On the node with this number.
    One(usize),
    Several,
}

impl Replica {
    fn of(shard: u32, copies: &[NumberedCopy], node: usize) -> Self {
        let mut others = started_nodes(copies).filter(|other| *other != node);
        let other = match (others.next(), others.next()) {
            (None, _) => NONE,
            (Some(other), None) => u32::try_from(other).unwrap_or(SEVERAL),
            (Some(_), Some(_)) => SEVERAL,
        };
        Self { shard, other }
    }

    pub(crate) fn others(self) -> Others {
        match self.other {
            NONE => Others::None,
            SEVERAL => Others::Several,
            other => Others::One(other as usize),
        }
    }
}

/// Shards of each node, in one piece.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ByNode<Shard> {
    /// Shards, node after node.
    shards: Vec<Shard>,
    /// For each node the place of its first shard; at the end their number.
    first: Vec<u32>,
}

impl<Shard: Clone + Default> ByNode<Shard> {
    /// Shards of each node, from pairs of a node and a shard.
    fn of(pairs: impl Iterator<Item = (usize, Shard)> + Clone, nodes: usize) -> Self {
        // Counted first, so that each shard is written to its place.
        let mut first = vec![0; nodes + 1];
        for (node, _) in pairs.clone() {
            first[node + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut shards = vec![Shard::default(); end(&first) as usize];
        for (node, shard) in pairs {
            shards[next[node] as usize] = shard;
            next[node] += 1;
        }
        Self { shards, first }
    }

    fn on(&self, node: usize) -> &[Shard] {
        &self.shards[range(&self.first, node)]
    }
}

/// Relation of the copies of a shard on a node to its other copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// There are several copies.
    Replicated,
    /// There is one copy.
    Single,
    /// There are several search replicas, beside copies that are written to.
    Searched,
    /// There is one search replica, beside copies that are written to: nothing stands in for it, and
    /// waiting would not help.
    OnlySearched,
}

fn by_shard(copies: &[NumberedCopy]) -> impl Iterator<Item = &[NumberedCopy]> + Clone {
    copies.chunk_by(|one, other| is_same(one, other) && one.search_only == other.search_only)
}

fn is_same(one: &NumberedCopy, other: &NumberedCopy) -> bool {
    (one.index, one.shard) == (other.index, other.shard)
}

fn started_nodes(copies: &[NumberedCopy]) -> impl Iterator<Item = usize> + Clone {
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
