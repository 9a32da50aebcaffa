//! Commands for the elected master, and how each changes the state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::failure::Failure;
use super::routing::{self, ALLOCATION};
use super::state::{Index, Shard, ShardCopy, Shutdown, State, now_ms};

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
