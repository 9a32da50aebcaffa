//! The cluster's state, decided by the elected master and stored by every member, and the commands that
//! change it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::routing::{self, ALLOCATION};
use super::wire::Failure;

/// One member, with its data from when it joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeInfo {
    /// Stored in the data path.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Different for every process.
    pub(crate) ephemeral_id: String,
    /// `host:port` for the other nodes.
    pub(crate) transport: String,
    /// `host:port` for the other nodes.
    pub(crate) http: String,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) started_ms: u64,
    /// `path.data`.
    #[serde(default)]
    pub(crate) data: String,
}

impl NodeInfo {
    /// Whether it may vote and be elected.
    pub(crate) fn is_master_eligible(&self) -> bool {
        self.roles.contains("master") || self.roles.contains("cluster_manager")
    }

    /// Whether it may hold shards.
    pub(crate) fn is_data(&self) -> bool {
        self.roles.iter().any(|role| role == "data" || role.starts_with("data_"))
    }
}

/// One version of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) term: u64,
    pub(crate) version: u64,
    /// Empty before the first election.
    pub(crate) cluster_uuid: String,
    pub(crate) master: Option<String>,
    /// By id.
    pub(crate) nodes: BTreeMap<String, NodeInfo>,
    /// Ids of nodes; a majority of them elects and commits.
    pub(crate) last_committed_config: BTreeSet<String>,
    /// The voting configuration after this version is committed.
    pub(crate) last_accepted_config: BTreeSet<String>,
    pub(crate) voting_config_exclusions: BTreeSet<(String, String)>,
    pub(crate) persistent: BTreeMap<String, String>,
    /// Cleared when the whole cluster stops.
    pub(crate) transient: BTreeMap<String, String>,
    pub(crate) indices: BTreeMap<String, Index>,
    /// Closed ones. As Elasticsearch before 7.2: they have no copies in the routing table, and nobody moves
    /// them.
    #[serde(default)]
    pub(crate) closed: BTreeMap<String, Index>,
    /// Node-shutdown records by node id.
    pub(crate) shutdowns: BTreeMap<String, Shutdown>,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) uuid: String,
    pub(crate) created_ms: u64,
    /// How long a copy waits for its node to return.
    pub(crate) delayed_timeout_ms: u64,
    pub(crate) shards: Vec<Shard>,
}

impl Index {
    /// How many replicas each shard has.
    pub(crate) fn replicas(&self) -> usize {
        let stays = |copy: &&ShardCopy| copy.moves_from.is_none();
        let copies =
            self.shards.first().map_or(0, |shard| shard.copies.iter().filter(stays).count());
        copies.saturating_sub(1)
    }
}

/// One shard: a primary and its replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    /// Increases with every new primary: writes of older primaries are refused.
    pub(crate) primary_term: u64,
    /// Nodes that have every acknowledged document. Empty if there never was one.
    pub(crate) in_sync: BTreeSet<String>,
    pub(crate) copies: Vec<ShardCopy>,
}

impl Shard {
    /// The node to which the copy on `node` moves.
    pub(crate) fn moves_to(&self, node: &str) -> Option<&str> {
        let is_from = |copy: &&ShardCopy| copy.moves_from.as_deref() == Some(node);
        self.copies.iter().find(is_from).and_then(ShardCopy::node)
    }

    /// The node of the primary, if that is started.
    pub(crate) fn primary_node(&self) -> Option<&str> {
        self.copies.iter().find(|copy| copy.primary).and_then(ShardCopy::started_on)
    }

    /// The nodes whose copies are started, the primary's first.
    pub(crate) fn started(&self) -> impl Iterator<Item = &str> {
        let primaries = self.copies.iter().filter(|copy| copy.primary);
        primaries
            .chain(self.copies.iter().filter(|copy| !copy.primary))
            .filter_map(ShardCopy::started_on)
    }
}

/// One copy of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardCopy {
    pub(crate) primary: bool,
    pub(crate) place: CopyState,
    /// The node it was on before it was unassigned.
    pub(crate) last_node: Option<String>,
    /// The node with the copy whose place it takes when it is complete.
    #[serde(default)]
    pub(crate) moves_from: Option<String>,
}

impl ShardCopy {
    /// A copy that was never placed.
    pub(crate) fn new(primary: bool, reason: &str) -> Self {
        let place = CopyState::Unassigned {
            reason: reason.to_owned(),
            since_ms: now_ms(),
            delayed_ms: None,
        };
        Self { primary, place, last_node: None, moves_from: None }
    }

    /// The node it is placed on, started or not.
    pub(crate) fn node(&self) -> Option<&str> {
        match &self.place {
            CopyState::Unassigned { .. } => None,
            CopyState::Initializing { node, .. } | CopyState::Started { node } => Some(node),
        }
    }

    /// The node it is started on.
    pub(crate) fn started_on(&self) -> Option<&str> {
        match &self.place {
            CopyState::Started { node } => Some(node),
            CopyState::Unassigned { .. } | CopyState::Initializing { .. } => None,
        }
    }
}

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CopyState {
    /// Unassigned. `delayed_ms`: until then only its last node may get it.
    Unassigned { reason: String, since_ms: u64, delayed_ms: Option<u64> },
    /// Being recovered on the node.
    Initializing { node: String, since_ms: u64 },
    /// Started on the node.
    Started { node: String },
}

/// The registered shutdown of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shutdown {
    /// `restart`, `remove` or `replace`.
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) started_ms: u64,
    pub(crate) allocation_delay: Option<String>,
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in the format of the engines (`30s`, `1m`, `0`), in milliseconds.
pub(crate) fn time_value(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" if number == "0" => 1,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

// The voting configuration: the nodes of which a majority decides.

/// Whether `votes` are more than half of `config`.
fn is_majority(config: &BTreeSet<String>, votes: &BTreeSet<String>) -> bool {
    config.intersection(votes).count() * 2 > config.len()
}

/// Whether `votes` are enough to be elected on this state and to commit it.
pub(super) fn is_quorum(state: &State, votes: &BTreeSet<String>) -> bool {
    is_majority(&state.last_committed_config, votes)
        && is_majority(&state.last_accepted_config, votes)
}

/// Adapts the accepted configuration to the nodes that are there, as the real engines do: an odd
/// number, never below three after there were three, and only if it can decide at once.
pub(super) fn reconfigure(state: &mut State) {
    let excluded: BTreeSet<&String> =
        state.voting_config_exclusions.iter().map(|(id, _)| id).collect();
    let current = &state.last_accepted_config;
    let live: BTreeSet<&String> = (state.nodes.values())
        .filter(|node| node.is_master_eligible())
        .map(|node| &node.id)
        .filter(|id| !excluded.contains(id))
        .collect();
    let mut candidates: Vec<&String> =
        live.iter().copied().chain(current.iter().filter(|id| !excluded.contains(id))).collect();
    // The preferred nodes first: live, the master, already in the configuration, then by id.
    candidates.sort_by_key(|id| {
        (!live.contains(id), state.master.as_ref() != Some(id), !current.contains(*id), *id)
    });
    candidates.dedup();
    let least = if current.len() < 3 { 1 } else { 3 };
    let odd = live.len() - usize::from(live.len().is_multiple_of(2) && !live.is_empty());
    let next: BTreeSet<String> = candidates.into_iter().take(odd.max(least)).cloned().collect();
    let live: BTreeSet<String> = live.into_iter().cloned().collect();
    if is_majority(&next, &live) {
        state.last_accepted_config = next;
    }
}

/// The first configuration, made by a node that sees more than half of the initial masters; nodes
/// that it does not see have a placeholder in it. `None` if it must not be made.
pub(super) fn bootstrap(
    initial_masters: &BTreeSet<String>,
    seen: &[NodeInfo],
) -> Option<BTreeSet<String>> {
    let id_of = |name: &String| {
        let node = seen.iter().find(|node| node.name == *name && node.is_master_eligible());
        node.map(|node| node.id.clone())
    };
    let found = initial_masters.iter().filter(|name| id_of(name).is_some()).count();
    (found * 2 > initial_masters.len()).then(|| {
        let placeholder = |name: &String| format!("{{bootstrap-placeholder}}-{name}");
        initial_masters
            .iter()
            .map(|name| id_of(name).unwrap_or_else(|| placeholder(name)))
            .collect()
    })
}

// Commands for the elected master, and how each changes the state.

/// Settings by scope; `None` removes a setting.
pub(crate) type Changes = BTreeMap<String, Option<String>>;

/// A command that changes the state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// `PUT /_cluster/settings`.
    PutSettings { persistent: Changes, transient: Changes },
    /// `PUT /{index}`, with an id chosen by the sender.
    CreateIndex { name: String, uuid: String, shards: usize, replicas: usize, delayed_ms: u64 },
    /// `DELETE /{index}`.
    DeleteIndex { name: String },
    /// `POST /{index}/_close`.
    CloseIndex { name: String },
    /// `POST /{index}/_open`.
    OpenIndex { name: String },
    /// `PUT /{index}/_settings`.
    PutIndexSettings { name: String, replicas: Option<usize>, delayed_ms: Option<u64> },
    /// `POST /_cluster/voting_config_exclusions`.
    ExcludeVotes { names: Vec<String> },
    /// `DELETE /_cluster/voting_config_exclusions`.
    ClearVotes,
    /// `PUT /_nodes/{id}/shutdown`.
    PutShutdown { node: String, record: Shutdown },
    /// `DELETE /_nodes/{id}/shutdown`.
    DeleteShutdown { node: String },
    /// A primary could not write to this copy.
    FailCopy { index: String, shard: usize, node: String, primary_term: u64 },
}

/// Changes `state`, or returns why not.
pub(super) fn apply(state: &mut State, command: Command) -> Result<Value, Failure> {
    match command {
        Command::PutSettings { persistent, transient } => {
            put_settings(state, persistent, transient)?;
        }
        Command::CreateIndex { name, uuid, shards, replicas, delayed_ms } => {
            if let Some(index) = state.indices.get(&name).or_else(|| state.closed.get(&name)) {
                let reason = format!("index [{name}/{}] already exists", index.uuid);
                return Err(Failure::new(400, "resource_already_exists_exception", reason));
            }
            let shard = || Shard {
                primary_term: 0,
                in_sync: [].into(),
                copies: (0..=replicas)
                    .map(|copy| ShardCopy::new(copy == 0, "INDEX_CREATED"))
                    .collect(),
            };
            let index = Index {
                uuid,
                created_ms: now_ms(),
                delayed_timeout_ms: delayed_ms,
                shards: (0..shards).map(|_| shard()).collect(),
            };
            state.indices.insert(name, index);
        }
        Command::DeleteIndex { name } => {
            let index = state.indices.remove(&name).or_else(|| state.closed.remove(&name));
            index.ok_or_else(|| Failure::no_such_index(&name))?;
        }
        Command::CloseIndex { name } if state.closed.contains_key(&name) => {}
        Command::CloseIndex { name } => {
            let index = state.indices.remove(&name);
            let index = index.ok_or_else(|| Failure::no_such_index(&name))?;
            state.closed.insert(name, index);
        }
        Command::OpenIndex { name } if state.indices.contains_key(&name) => {}
        Command::OpenIndex { name } => {
            let index = state.closed.remove(&name);
            let mut index = index.ok_or_else(|| Failure::no_such_index(&name))?;
            routing::reopen(&mut index);
            state.indices.insert(name, index);
        }
        Command::PutIndexSettings { name, replicas, delayed_ms } => {
            let index =
                state.indices.get_mut(&name).ok_or_else(|| Failure::no_such_index(&name))?;
            index.delayed_timeout_ms = delayed_ms.unwrap_or(index.delayed_timeout_ms);
            if let Some(replicas) = replicas {
                set_replicas(index, replicas);
            }
        }
        Command::ExcludeVotes { names } => {
            let named = state.nodes.values().filter(|node| names.contains(&node.name));
            let named = named.map(|node| (node.id.clone(), node.name.clone()));
            state.voting_config_exclusions.extend(named);
        }
        Command::ClearVotes => state.voting_config_exclusions.clear(),
        Command::PutShutdown { node, record } => drop(state.shutdowns.insert(node, record)),
        Command::DeleteShutdown { node } => {
            state.shutdowns.remove(&node).ok_or_else(|| {
                let reason = format!("node [{node}] is not currently shutting down");
                Failure::new(404, "resource_not_found_exception", reason)
            })?;
        }
        Command::FailCopy { index, shard, node, primary_term } => {
            let index =
                state.indices.get_mut(&index).ok_or_else(|| Failure::no_such_index(&index))?;
            let current = index.shards.get(shard).map(|shard| shard.primary_term);
            if current != Some(primary_term) {
                let reason = format!("primary term [{primary_term}] did not match {current:?}");
                return Err(Failure::new(503, "no_longer_primary_shard_exception", reason));
            }
            routing::fail_copy(index, shard, &node);
        }
    }
    Ok(json!({"acknowledged": true}))
}

fn put_settings(state: &mut State, persistent: Changes, transient: Changes) -> Result<(), Failure> {
    if persistent.is_empty() && transient.is_empty() {
        let reason = "Validation Failed: 1: no settings to update;";
        return Err(Failure::new(400, "action_request_validation_exception", reason));
    }
    for (scope, changes) in [("persistent", &persistent), ("transient", &transient)] {
        for (key, value) in changes {
            check_setting(scope, key, value.as_deref())?;
        }
    }
    for (settings, changes) in
        [(&mut state.persistent, persistent), (&mut state.transient, transient)]
    {
        for (key, value) in changes {
            match value {
                Some(value) => drop(settings.insert(key, value)),
                // `a.*` removes everything below `a`.
                None => settings.retain(|old, _| match key.strip_suffix('*') {
                    Some(prefix) => !old.starts_with(prefix),
                    None => *old != key,
                }),
            }
        }
    }
    Ok(())
}

fn check_setting(scope: &str, key: &str, value: Option<&str>) -> Result<(), Failure> {
    let illegal = |reason: String| Err(Failure::new(400, "illegal_argument_exception", reason));
    let Some(value) = value else { return Ok(()) };
    let known = ["cluster.metadata.", "cluster.routing.", "logger."];
    if !known.iter().any(|known| key.starts_with(known)) {
        return illegal(format!("{scope} setting [{key}], not recognized"));
    }
    let values = ["all", "primaries", "new_primaries", "none"];
    if key == ALLOCATION && !values.contains(&value.to_ascii_lowercase().as_str()) {
        return illegal(format!(
            "Illegal allocation.enable value [{}]",
            value.to_ascii_uppercase()
        ));
    }
    Ok(())
}

fn set_replicas(index: &mut Index, replicas: usize) {
    for shard in &mut index.shards {
        // What is being moved begins to move again.
        shard.copies.retain(|copy| copy.moves_from.is_none());
        while shard.copies.len() <= replicas {
            shard.copies.push(ShardCopy::new(false, "REPLICA_ADDED"));
        }
        while shard.copies.len() > replicas + 1 {
            // Copies without a place come first.
            let spare = |placed: bool| {
                move |copy: &ShardCopy| !copy.primary && (placed || copy.node().is_none())
            };
            let at = shard.copies.iter().rposition(spare(false));
            let Some(at) = at.or_else(|| shard.copies.iter().rposition(spare(true))) else { break };
            if let Some(node) = shard.copies.remove(at).node() {
                shard.in_sync.remove(node);
            }
        }
    }
}
