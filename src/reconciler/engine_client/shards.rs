//! Shard copies, from the routing table of the cluster state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use super::answer::Answer;
use super::transport::Call;
use super::{EngineError, Node};

/// One copy of one shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The index; hidden and closed ones too.
    pub index: Arc<str>,
    /// The shard's number in it.
    pub number: u32,
    /// Whether this copy is the primary.
    pub primary: bool,
    /// Its state.
    pub state: ShardState,
    /// The name of the node that has it; the source while it relocates.
    pub node_name: Option<Arc<str>>,
    /// The name of the node it relocates to.
    pub relocating_to: Option<Arc<str>>,
}

/// The state of a shard copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ShardState {
    /// No node has it.
    Unassigned,
    /// It is being created.
    Initializing,
    /// It serves.
    Started,
    /// It serves while it is copied to another node.
    Relocating,
    /// A value this version does not know.
    #[serde(other)]
    Unknown,
}

/// The indices of which some shard has no second copy, not even an unassigned one: they are not
/// replicated, and not available while the node restarts.
pub fn unreplicated(shards: &[Shard]) -> BTreeSet<Arc<str>> {
    let mut copies: BTreeMap<(&Arc<str>, u32), usize> = BTreeMap::new();
    for shard in shards {
        *copies.entry((&shard.index, shard.number)).or_default() += 1;
    }
    copies
        .into_iter()
        .filter(|(_, count)| *count < 2)
        .map(|((index, _), _)| index.clone())
        .collect()
}

/// Every copy, and of it only what is used here.
pub(super) fn routing_call(timeout: &str) -> Call {
    Call::get(format!(
        "/_cluster/state/routing_table?master_timeout={timeout}\
         &filter_path=routing_table.indices.*.shards.*.state,\
         routing_table.indices.*.shards.*.primary,routing_table.indices.*.shards.*.node,\
         routing_table.indices.*.shards.*.relocating_node"
    ))
    .large()
}

#[derive(Default, Deserialize)]
struct RoutingTable {
    #[serde(default)]
    indices: BTreeMap<String, Index>,
}

#[derive(Debug, Deserialize)]
struct Index {
    shards: BTreeMap<String, Vec<Copy>>,
}

#[derive(Debug, Deserialize)]
struct Copy {
    state: ShardState,
    primary: bool,
    node: Option<String>,
    relocating_node: Option<String>,
}

/// A shard whose key is not a number.
#[derive(Debug, thiserror::Error)]
#[error("shard {number:?} of index {index} is not a number")]
pub(super) struct ShardNumberError {
    number: String,
    index: Arc<str>,
    #[source]
    source: std::num::ParseIntError,
}

/// All copies, in order. For the id of a node that is not in `nodes` the id itself is used as the
/// name: a copy with a node never counts as unassigned.
pub(super) fn parse(answer: &Answer, nodes: &[Node]) -> Result<Arc<[Shard]>, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        routing_table: RoutingTable,
    }
    let names: BTreeMap<&str, Arc<str>> =
        nodes.iter().map(|node| (node.id.as_str(), node.name.as_str().into())).collect();
    let name = |id: Option<String>| {
        id.map(|id| names.get(id.as_str()).cloned().unwrap_or_else(|| id.into()))
    };
    let mut all = vec![];
    for (index, Index { shards }) in answer.read::<Body>()?.routing_table.indices {
        let index: Arc<str> = index.into();
        for (number, copies) in shards {
            let number: u32 = number.parse().map_err(|source| {
                answer.unexpected(ShardNumberError { number, index: index.clone(), source })
            })?;
            all.extend(copies.into_iter().map(|copy| Shard {
                index: index.clone(),
                number,
                primary: copy.primary,
                state: copy.state,
                node_name: name(copy.node),
                relocating_to: name(copy.relocating_node),
            }));
        }
    }
    all.sort_unstable();
    Ok(all.into())
}
