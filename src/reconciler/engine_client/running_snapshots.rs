//! Snapshots that are being taken, as the cluster state has them. `GET _snapshot/_status` would ask every
//! node and every repository.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What is read of them: as much as names one and says what it still needs of which node.
pub(super) const FIELDS: &str = "snapshots.snapshots.repository,snapshots.snapshots.snapshot,\
                                 snapshots.snapshots.start_time_millis,\
                                 snapshots.snapshots.shards.state,snapshots.snapshots.shards.node";

/// A snapshot that is being taken of shards on a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunningSnapshot {
    /// `repository:snapshot`.
    pub name: String,
    /// When it began, in milliseconds since the epoch, by the clock of the elected master.
    pub since_ms: u64,
    /// How many shards on the node are not read yet.
    pub shards: u64,
}

/// `snapshots` in the cluster state; absent while none is taken.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Snapshots {
    #[serde(default)]
    snapshots: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    repository: String,
    snapshot: String,
    start_time_millis: u64,
    #[serde(default)]
    shards: Vec<Shard>,
}

#[derive(Debug, Deserialize)]
struct Shard {
    state: String,
    /// None of a shard that is queued behind another snapshot.
    node: Option<String>,
}

/// The snapshots, each by the ids of the nodes whose shards it needs; of several the latest.
pub(super) fn by_node(all: Snapshots) -> BTreeMap<String, RunningSnapshot> {
    let mut entries = all.snapshots;
    entries.sort_by_key(|entry| entry.start_time_millis);
    entries.into_iter().flat_map(nodes_of).collect()
}

fn nodes_of(entry: Entry) -> impl Iterator<Item = (String, RunningSnapshot)> {
    let name = format!("{}:{}", entry.repository, entry.snapshot);
    let since_ms = entry.start_time_millis;
    let mut shards: BTreeMap<String, u64> = BTreeMap::new();
    for node in entry.shards.into_iter().filter(is_needed).filter_map(|shard| shard.node) {
        *shards.entry(node).or_default() += 1;
    }
    shards
        .into_iter()
        .map(move |(node, shards)| (node, RunningSnapshot { name: name.clone(), since_ms, shards }))
}

/// Whether it is being read, or will be as soon as it has started on its node. The other states are
/// ends (`SUCCESS`, `FAILED`, `MISSING`), an end that comes anyway (`ABORTED`), or no reading yet
/// (`QUEUED`, `PAUSED_FOR_NODE_REMOVAL`).
fn is_needed(shard: &Shard) -> bool {
    matches!(shard.state.as_str(), "INIT" | "WAITING")
}
