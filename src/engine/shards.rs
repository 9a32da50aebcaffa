//! Shard copies of the cluster state, searchable snapshots among their indices, and the reason why a copy
//! stays on its node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::answer::Answer;
use crate::transport::{Call, MASTER_TIMEOUT};
use crate::{Engine, EngineClient, EngineError, Node, limited};

/// One copy of one shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// Name of the index; hidden and closed ones too.
    pub index: Arc<str>,
    /// Number of the shard in its index.
    pub number: u32,
    /// True if this copy is the primary.
    pub primary: bool,
    /// True for a search replica of OpenSearch 3: it answers searches, and is never made the primary.
    pub search_only: bool,
    /// State of the copy.
    pub state: ShardState,
    /// Name of the node that has the copy; the source while it relocates.
    pub node_name: Option<Arc<str>>,
    /// Name of the node that the copy relocates to.
    pub relocating_to: Option<Arc<str>>,
}

/// The state of a shard copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ShardState {
    /// No node has the copy.
    Unassigned,
    /// The copy is being created.
    Initializing,
    /// The copy serves.
    Started,
    /// The copy serves while it is copied to another node.
    Relocating,
    /// A value that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ShardState {
    /// True if the copy serves on its node; while it is moved, on the source.
    pub const fn serves(self) -> bool {
        matches!(self, Self::Started | Self::Relocating)
    }
}

/// The indices of which some shard has no second copy, not even an unassigned one: they are not replicated,
/// and not available while the node restarts. A search replica is no second copy.
pub fn unreplicated(shards: &[Shard]) -> BTreeSet<Arc<str>> {
    let mut copies: BTreeMap<(&Arc<str>, u32), usize> = BTreeMap::new();
    for shard in shards {
        *copies.entry((&shard.index, shard.number)).or_default() += usize::from(!shard.search_only);
    }
    copies
        .into_iter()
        .filter(|(_, count)| *count < 2)
        .map(|((index, _), _)| index.clone())
        .collect()
}

/// All shard copies, and the closed indices without any, of one cluster state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Routing {
    /// Shard copies in their order.
    pub(super) shards: Arc<[Shard]>,
    /// Closed indices without copies: see [`super::Topology::immovable`].
    pub(super) immovable: BTreeSet<String>,
}

/// The request for every shard copy, with the fields that are used here alone, and for every closed index.
pub(super) fn routing_call() -> Call {
    Call::get(format!(
        "/_cluster/state/routing_table,blocks?master_timeout={MASTER_TIMEOUT}\
         &filter_path=routing_table.indices.*.shards.*.state,\
         routing_table.indices.*.shards.*.primary,routing_table.indices.*.shards.*.node,\
         routing_table.indices.*.shards.*.relocating_node,\
         routing_table.indices.*.shards.*.searchOnly,blocks.indices.*.4.retryable"
    ))
    .of_shards()
}

/// Operations that the cluster refuses, by index.
#[derive(Default, Deserialize)]
struct Blocks {
    #[serde(default, deserialize_with = "limited::by_index")]
    indices: BTreeMap<String, IndexBlocks>,
}

#[derive(Deserialize)]
struct IndexBlocks {
    /// The block `index closed`; its number is the same in all versions of both engines
    /// (`INDEX_CLOSED_BLOCK_ID` of `MetadataIndexStateService`).
    #[serde(rename = "4")]
    closed: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct RoutingTable<'a> {
    #[serde(default, borrow)]
    indices: Copies<'a>,
}

/// Shard copies in the order of the answer, with nothing allocated for one: a large cluster has 100,000.
#[derive(Default)]
struct Copies<'a>(Vec<RoutedCopy<'a>>);

struct RoutedCopy<'a> {
    index: Arc<str>,
    number: u32,
    copy: Copy<'a>,
}

#[derive(Debug, Deserialize)]
struct Index<'a> {
    #[serde(borrow, deserialize_with = "limited::by_node")]
    shards: BTreeMap<String, Vec<Copy<'a>>>,
}

/// A shard copy in the routing table. Its ids are those of nodes, which no engine writes with escapes.
#[derive(Debug, Deserialize)]
struct Copy<'a> {
    state: ShardState,
    primary: bool,
    node: Option<&'a str>,
    relocating_node: Option<&'a str>,
    /// True for a search replica; only an OpenSearch that has them writes the field.
    #[serde(default, rename = "searchOnly")]
    search_only: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Copies<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(IndicesVisitor)
    }
}

struct IndicesVisitor;

/// Limit of the length of an index's name, in bytes. Engines take 255. The name stands in many messages.
const LONGEST_NAME: usize = 1024;

impl<'de> Visitor<'de> for IndicesVisitor {
    type Value = Copies<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("shards by index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut indices: A) -> Result<Self::Value, A::Error> {
        let mut all = vec![];
        while let Some((index, Index { shards })) = indices.next_entry::<String, Index<'_>>()? {
            if index.len() > LONGEST_NAME {
                return Err(A::Error::custom("an index has a name that no engine takes"));
            }
            let index: Arc<str> = index.into();
            for (number, copies) in shards {
                let number = number.parse().map_err(|source| {
                    let index = Arc::clone(&index);
                    A::Error::custom(ShardNumberError { number, index, source })
                })?;
                let found = |copy| RoutedCopy { index: Arc::clone(&index), number, copy };
                all.extend(copies.into_iter().map(found));
            }
        }
        Ok(Copies(all))
    }
}

/// Error of a shard whose key is not a number.
#[derive(Debug, thiserror::Error)]
#[error("shard {number:?} of index {index} is not a number")]
pub(super) struct ShardNumberError {
    number: String,
    index: Arc<str>,
    #[source]
    source: std::num::ParseIntError,
}

/// Reads the routing table. The id of a node that is not in `nodes` stands in for its name: a copy with a
/// node never counts as unassigned.
pub(super) fn parse(answer: &Answer, nodes: &[Node]) -> Result<Routing, EngineError> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(default, borrow)]
        routing_table: RoutingTable<'a>,
        #[serde(default)]
        blocks: Blocks,
    }
    let names: BTreeMap<&str, Arc<str>> =
        nodes.iter().map(|node| (node.id.as_str(), node.name.as_str().into())).collect();
    let name = |id: &str| names.get(id).cloned().unwrap_or_else(|| id.into());
    let shard = |RoutedCopy { index, number, copy }: RoutedCopy<'_>| Shard {
        index,
        number,
        primary: copy.primary,
        search_only: copy.search_only,
        state: copy.state,
        node_name: copy.node.map(name),
        relocating_to: copy.relocating_node.map(name),
    };
    let Body { routing_table, blocks } = answer.read::<Body<'_>>()?;
    let mut all: Vec<Shard> = routing_table.indices.0.into_iter().map(shard).collect();
    all.sort_unstable();
    let closed = blocks.indices.into_iter().filter(|(_, blocks)| blocks.closed.is_some());
    let has_copies = |index: &str| all.binary_search_by(|shard| (*shard.index).cmp(index)).is_ok();
    let immovable = closed.map(|(index, _)| index).filter(|index| !has_copies(index)).collect();
    Ok(Routing { immovable, shards: all.into() })
}

/// Values of `index.store.type` for Elasticsearch's searchable snapshots, fully and partially mounted ones,
/// and for OpenSearch's.
const FROM_REPOSITORY: [&str; 2] = ["snapshot", "remote_snapshot"];

impl EngineClient {
    /// Names of all searchable snapshots, hidden and closed ones too. The answer has only the indices with a
    /// store type of their own.
    ///
    /// # Errors
    /// See [`EngineError`]. The account needs the privilege `view_index_metadata`, in OpenSearch
    /// `indices:monitor/settings/get`.
    pub async fn searchable_snapshots(
        &self,
        engine: &Engine,
    ) -> Result<BTreeSet<String>, EngineError> {
        parse_store_types(&self.of_a_member(engine, &store_types_call()).await?)
    }
}

pub(super) fn store_types_call() -> Call {
    Call::get(format!(
        "/_all/_settings/index.store.type?expand_wildcards=all&flat_settings=true\
         &master_timeout={MASTER_TIMEOUT}"
    ))
    .of_shards()
}

pub(super) fn parse_store_types(answer: &Answer) -> Result<BTreeSet<String>, EngineError> {
    #[derive(Deserialize)]
    struct Body(#[serde(deserialize_with = "limited::by_index")] BTreeMap<String, Index>);
    #[derive(Deserialize)]
    struct Index {
        settings: Settings,
    }
    #[derive(Deserialize)]
    struct Settings {
        #[serde(rename = "index.store.type")]
        store_type: Option<String>,
    }
    let Body(indices) = answer.read()?;
    let is_one = |index: &Index| {
        let store_type = index.settings.store_type.as_deref();
        store_type.is_some_and(|store_type| FROM_REPOSITORY.contains(&store_type))
    };
    Ok(indices.into_iter().filter(|(_, index)| is_one(index)).map(|(name, _)| name).collect())
}

/// Limit of the different obstacles that a message names.
const NAMED: usize = 2;

impl EngineClient {
    /// Reason why this copy stays on its node: the engine's words, with the settings that they name; `None`
    /// if it is going to move.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn why_it_stays(&self, shard: &Shard) -> Result<Option<String>, EngineError> {
        parse_explanation(&self.transport.send(&explain_call(shard)).await?)
    }
}

pub(super) fn explain_call(shard: &Shard) -> Call {
    let mut body = json!({
        "index": &*shard.index,
        "shard": shard.number,
        "primary": shard.primary,
    });
    if let Some(node) = &shard.node_name
        && !shard.primary
    {
        body["current_node"] = json!(&**node);
    }
    Call::read_with("/_cluster/allocation/explain", body).of_nodes()
}

pub(super) fn parse_explanation(answer: &Answer) -> Result<Option<String>, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        index: String,
        shard: u32,
        can_move_to_other_node: Option<String>,
        move_explanation: Option<String>,
        #[serde(default, deserialize_with = "limited::of_nodes")]
        node_allocation_decisions: Vec<OnNode>,
    }
    #[derive(Deserialize)]
    struct OnNode {
        node_decision: Option<String>,
        #[serde(default)]
        deciders: Vec<Decider>,
    }
    #[derive(Deserialize)]
    struct Decider {
        decider: String,
        decision: String,
        explanation: String,
    }
    let body: Body = answer.read()?;
    if body.can_move_to_other_node.as_deref() != Some("no") {
        return Ok(None);
    }
    // The engine says "no" also for a copy that only waits for its turn.
    let takes_it = |node: &OnNode| {
        let decision = node.node_decision.as_deref();
        matches!(decision, Some("throttled" | "yes" | "not_preferred"))
    };
    if body.node_allocation_decisions.iter().any(takes_it) {
        return Ok(None);
    }
    let mut obstacles: Vec<(usize, String)> = Vec::new();
    let deciders = body.node_allocation_decisions.into_iter().flat_map(|node| node.deciders);
    for one in deciders.filter(|one| one.decision == "NO") {
        // Our own setting excludes nodes that leave.
        if one.decider == "filter"
            && one.explanation.contains("[cluster.routing.allocation.exclude]")
        {
            continue;
        }
        // The explanation names the node of the other copy: it would be another obstacle on each node.
        let text = match one.decider.as_str() {
            "same_shard" => "other nodes have a copy of it already: lower \
                             index.number_of_replicas of this index, or keep more nodes"
                .to_owned(),
            _ => one.explanation,
        };
        match obstacles.iter_mut().find(|(_, known)| *known == text) {
            Some((nodes, _)) => *nodes += 1,
            None => obstacles.push((1, text)),
        }
    }
    obstacles.sort_by_key(|(nodes, _)| std::cmp::Reverse(*nodes));
    let mut why: Vec<String> = obstacles.into_iter().take(NAMED).map(|(_, text)| text).collect();
    if why.is_empty() {
        why.extend(body.move_explanation);
    }
    Ok(Some(format!("[{}][{}] cannot move: {}", body.index, body.shard, why.join("; "))))
}
