//! Snapshots that are being taken, as the cluster state has them. `GET _snapshot/_status` would ask every
//! node and every repository.

use std::collections::BTreeMap;

use serde::Deserialize;
use stayput_http::shorten;

use super::limited;

/// Fields of the cluster state to read: the names of running snapshots, and the shards that they still need.
pub(super) const FIELDS: &str = "snapshots.snapshots.repository,snapshots.snapshots.snapshot,\
                                 snapshots.snapshots.start_time_millis,\
                                 snapshots.snapshots.shards.state,snapshots.snapshots.shards.node";

/// Limit of the length of a name; longer ones are shortened, since each node has one.
const MAX_NAME_CHARS: usize = 200;

/// A snapshot that is being taken of shards on a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunningSnapshot {
    /// `repository:snapshot`.
    pub name: String,
    /// Time of its begin, in milliseconds since the epoch, by the clock of the elected master.
    pub since_ms: u64,
    /// Number of shards on the node that are not read yet.
    pub shards: u64,
}

/// The field `snapshots` of the cluster state; absent while no snapshot is taken.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Snapshots<'a> {
    #[serde(default, borrow, deserialize_with = "limited::of_nodes")]
    snapshots: Vec<Entry<'a>>,
}

#[derive(Debug, Deserialize)]
struct Entry<'a> {
    repository: String,
    snapshot: String,
    start_time_millis: u64,
    #[serde(default, borrow)]
    shards: Vec<Shard<'a>>,
}

/// A shard of a snapshot. A large cluster has 100,000: nothing is allocated for one.
#[derive(Debug, Deserialize)]
struct Shard<'a> {
    state: State,
    /// Id of the shard's node, which no engine writes with escapes; `None` for a shard that is queued behind
    /// another snapshot.
    node: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    /// The shard is being read.
    Init,
    /// The shard will be read as soon as it has started on its node.
    Waiting,
    /// An end (`SUCCESS`, `FAILED`, `MISSING`), an end that comes anyway (`ABORTED`), or no reading yet (`QUEUED`,
    /// `PAUSED_FOR_NODE_REMOVAL`).
    #[serde(other)]
    Other,
}

/// The running snapshot of each node whose shards it needs, by id of the node; of several the latest.
pub(super) fn by_node(all: Snapshots<'_>) -> BTreeMap<String, RunningSnapshot> {
    let mut entries = all.snapshots;
    entries.sort_by_key(|entry| entry.start_time_millis);
    entries.into_iter().flat_map(nodes_of).collect()
}

fn nodes_of(entry: Entry<'_>) -> impl Iterator<Item = (String, RunningSnapshot)> {
    let mut name = format!("{}:{}", entry.repository, entry.snapshot);
    shorten(&mut name, MAX_NAME_CHARS);
    let since_ms = entry.start_time_millis;
    let mut shards: BTreeMap<&str, u64> = BTreeMap::new();
    let is_needed = |shard: &Shard<'_>| matches!(shard.state, State::Init | State::Waiting);
    for node in entry.shards.into_iter().filter(is_needed).filter_map(|shard| shard.node) {
        *shards.entry(node).or_default() += 1;
    }
    shards.into_iter().map(move |(node, shards)| {
        (node.to_owned(), RunningSnapshot { name: name.clone(), since_ms, shards })
    })
}
