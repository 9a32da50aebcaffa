//! The copies of all shards. A large cluster has 100,000 of them: each is a few numbers, and every name
//! is kept once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::index::Hashed;

/// One copy of a shard, with its names as texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ShardCopy")]
pub struct ShardCopy<Name = String> {
    /// Name of the index.
    pub index: Name,
    /// Number of the shard.
    pub shard: u32,
    /// True for the primary.
    pub primary: bool,
    /// True for a search replica, which is never made the primary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search_only: bool,
    /// True if the copy is `STARTED`; a copy that is being moved counts as started on its current node.
    pub started: bool,
    /// Name of the node; absent for an unassigned copy.
    pub node: Option<Name>,
}

/// All copies, sorted by index and shard. A clone shares them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardCopies(Arc<Table>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    /// Names of the indices, sorted.
    indices: Vec<Arc<str>>,
    /// Names of the nodes, sorted.
    nodes: Vec<Arc<str>>,
    /// Copies, sorted by index, shard, and `search_only`.
    copies: Vec<NumberedCopy>,
    places: Places,
}

/// One copy, with its names as indices into the lists of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NumberedCopy {
    index: u32,
    shard: u32,
    /// Before the other fields, because copies are sorted by it: those that can stand in for each
    /// other lie next to each other.
    search_only: bool,
    replica: bool,
    node: Option<u32>,
    pub(crate) started: bool,
}

impl ShardCopies {
    /// Every copy.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ShardCopy<&str>> {
        self.0.copies.iter().map(|copy| self.named(copy))
    }

    fn named(&self, copy: &NumberedCopy) -> ShardCopy<&str> {
        ShardCopy {
            index: self.index(copy),
            shard: copy.shard,
            primary: !copy.replica,
            search_only: copy.search_only,
            started: copy.started,
            node: copy.node().map(|node| &*self.0.nodes[node]),
        }
    }

    /// Every copy, with its own texts.
    pub fn to_vec(&self) -> Vec<ShardCopy> {
        let own = |copy: ShardCopy<&str>| ShardCopy {
            index: copy.index.to_owned(),
            shard: copy.shard,
            primary: copy.primary,
            search_only: copy.search_only,
            started: copy.started,
            node: copy.node.map(str::to_owned),
        };
        self.iter().map(own).collect()
    }

    /// All copies of a shard with this number that can stand in for each other.
    pub(crate) fn of_shard(&self, shard: u32) -> &[NumberedCopy] {
        &self.0.copies[range(&self.0.places.first_copy, shard as usize)]
    }

    /// The shards with a started copy on this node, and with other copies. Search replicas do not count,
    /// unless the index has no other copies at all.
    pub(crate) fn replicated_on(&self, node: usize) -> &[Replica] {
        self.0.places.replicated.on(node)
    }

    /// The shards with a started search replica on this node, with other search replicas, and with
    /// copies that can be the primary.
    pub(crate) fn searched_on(&self, node: usize) -> &[u32] {
        self.0.places.searched.on(node)
    }

    /// The shards of which the only copy is on this node, and started: their indices have no replicas.
    pub(crate) fn single_on(&self, node: usize) -> &[u32] {
        self.0.places.single.on(node)
    }

    /// Every primary that is on no node.
    pub(crate) fn unassigned_primaries(&self) -> impl ExactSizeIterator<Item = ShardCopy<&str>> {
        let copies = self.0.places.unassigned_primaries.iter();
        copies.map(|copy| self.named(&self.0.copies[*copy as usize]))
    }

    /// The first copy that a node is making, and the name of the node.
    pub(crate) fn first_initializing(&self) -> Option<(ShardCopy<&str>, &str)> {
        let mut copies = self.iter().filter(|copy| !copy.started);
        copies.find_map(|copy| copy.node.map(|node| (copy, node)))
    }

    /// Names of the nodes that have copies; their places are the numbers in the copies.
    pub(crate) fn nodes(&self) -> &[Arc<str>] {
        &self.0.nodes
    }

    /// Name of the index of this copy.
    pub(crate) fn index(&self, copy: &NumberedCopy) -> &str {
        &self.0.indices[copy.index as usize]
    }
}

impl NumberedCopy {
    pub(crate) const fn shard(&self) -> u32 {
        self.shard
    }

    pub(crate) fn node(&self) -> Option<usize> {
        self.node.map(|node| node as usize)
    }
}

impl<Name: AsRef<str>> FromIterator<ShardCopy<Name>> for ShardCopies {
    fn from_iter<Copies: IntoIterator<Item = ShardCopy<Name>>>(copies: Copies) -> Self {
        let (mut indices, mut nodes) = (NameNumbers::default(), NameNumbers::default());
        let numbered = |copy: ShardCopy<Name>| NumberedCopy {
            index: indices.number(copy.index.as_ref()),
            shard: copy.shard,
            search_only: copy.search_only,
            replica: !copy.primary,
            node: copy.node.map(|node| nodes.number(node.as_ref())),
            started: copy.started,
        };
        let mut copies: Vec<NumberedCopy> = copies.into_iter().map(numbered).collect();
        let ((indices, index_at), (nodes, node_at)) = (indices.sorted(), nodes.sorted());
        for copy in &mut copies {
            copy.index = index_at[copy.index as usize];
            copy.node = copy.node.map(|node| node_at[node as usize]);
        }
        copies.sort_unstable();
        let places = Places::of(&copies, nodes.len());
        Self(Arc::new(Table { indices, nodes, copies, places }))
    }
}

/// Numbers for names, in the order in which they come.
#[derive(Default)]
struct NameNumbers {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, Hashed>,
    /// Number of the last name: the copies of an index come one after the other.
    last: u32,
}

impl NameNumbers {
    fn number(&mut self, name: &str) -> u32 {
        if self.names.get(self.last as usize).is_none_or(|last| **last != *name) {
            self.last = self.numbers.get(name).copied().unwrap_or_else(|| self.add(name.into()));
        }
        self.last
    }

    fn add(&mut self, name: Arc<str>) -> u32 {
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// The names, sorted, and the place of each number in them.
    fn sorted(self) -> (Vec<Arc<str>>, Vec<u32>) {
        let mut names: Vec<(Arc<str>, u32)> = self.names.into_iter().zip(0..).collect();
        names.sort_unstable();
        let mut places = vec![0; names.len()];
        for ((_, number), place) in names.iter().zip(0..) {
            places[*number as usize] = place;
        }
        (names.into_iter().map(|(name, _)| name).collect(), places)
    }
}

impl Serialize for ShardCopies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for ShardCopies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<ShardCopy>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl JsonSchema for ShardCopies {
    fn schema_name() -> Cow<'static, str> {
        Vec::<ShardCopy>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<ShardCopy>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Places of copies and shards. The search replicas of a shard are a shard of their own here: they
/// stand in for each other, and for no copy that is written to, because they are never made the primary.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
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
    fn of(copies: &[NumberedCopy], nodes: usize) -> Self {
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
}

/// A shard with a started copy on a node, and the place of its other started copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Default, PartialEq, Eq)]
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
