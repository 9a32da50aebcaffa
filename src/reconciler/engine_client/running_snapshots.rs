//! Snapshots that are being taken, as the cluster state has them. `GET _snapshot/_status` would ask every
//! node and every repository.

use std::collections::BTreeMap;

use serde::Deserialize;
use stayput_net::shorten;

use super::limited;

/// What is read of them: as much as names one and says what it still needs of which node.
pub(super) const FIELDS: &str = "snapshots.snapshots.repository,snapshots.snapshots.snapshot,\
                                 snapshots.snapshots.start_time_millis,\
                                 snapshots.snapshots.shards.state,snapshots.snapshots.shards.node";

/// Longer names are shortened: each node has one.
const MAX_NAME_CHARS: usize = 200;

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

/// A large cluster has 100,000: nothing is allocated for one.
#[derive(Debug, Deserialize)]
struct Shard<'a> {
    state: State,
    /// Its id, which no engine writes with escapes; none of a shard that is queued behind another snapshot.
    node: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    /// It is being read.
    Init,
    /// It will be, as soon as it has started on its node.
    Waiting,
    /// An end (`SUCCESS`, `FAILED`, `MISSING`), an end that comes anyway (`ABORTED`), or no reading yet (`QUEUED`,
    /// `PAUSED_FOR_NODE_REMOVAL`).
    #[serde(other)]
    Other,
}

/// The snapshots, each by the ids of the nodes whose shards it needs; of several the latest.
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
