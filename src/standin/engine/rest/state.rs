//! `/_cluster/state`, `/_cluster/settings` and `/_cluster/voting_config_exclusions`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{
    Changes, Command, CopyState, Failure, NodeInfo, Shard, ShardCopy, State,
};
use crate::engine::config::Distribution;

impl Node {
    /// The parts named in `metrics`, all of them if it is empty.
    pub(super) fn cluster_state(&self, request: &Request, metrics: &[&str]) -> Answered {
        let state = self.state(request)?;
        let metrics: Vec<&str> = metrics.first().map_or("_all", |it| it).split(',').collect();
        let wanted = |name: &str| metrics.contains(&name) || metrics.contains(&"_all");
        let mut body = json!({
            "cluster_name": self.config.cluster_name,
            "cluster_uuid": uuid(&state),
        });
        if wanted("version") {
            body["version"] = json!(state.version);
        }
        if wanted("master_node") {
            body["master_node"] = json!(state.master);
        }
        if wanted("cluster_manager_node")
            && self.config.behaviour.distribution == Distribution::OpenSearch
        {
            body["cluster_manager_node"] = json!(state.master);
        }
        if wanted("blocks") {
            body["blocks"] = blocks(&state);
        }
        if wanted("nodes") {
            let nodes = state.nodes.iter().map(|(id, node)| (id.clone(), self.member(node)));
            body["nodes"] = nodes.collect::<Map<_, _>>().into();
        }
        if wanted("metadata") {
            body["metadata"] = metadata(&state);
        }
        if wanted("routing_table") {
            body["routing_table"] = routing_table(&state);
        }
        Ok(Answer::json(200, body))
    }

    fn member(&self, node: &NodeInfo) -> Value {
        let mut member = json!({
            "name": node.name,
            "ephemeral_id": node.ephemeral_id,
            "transport_address": node.transport,
            "attributes": node.attributes,
        });
        if self.config.behaviour.distribution == Distribution::Elasticsearch {
            member["external_id"] = json!(node.name);
            member["roles"] = json!(node.roles);
            member["version"] = json!(node.version);
        }
        member
    }
}

/// The cluster's uuid; `_na_` if there is none.
pub(super) fn uuid(state: &State) -> &str {
    if state.cluster_uuid.is_empty() { "_na_" } else { &state.cluster_uuid }
}

fn metadata(state: &State) -> Value {
    let exclusions = state.voting_config_exclusions.iter();
    let exclusions: Vec<Value> =
        exclusions.map(|(id, name)| json!({"node_id": id, "node_name": name})).collect();
    let indices = state.indices.iter().map(|(name, index)| {
        let body = json!({
            "state": "open",
            "settings": {"index": super::indices::settings(name, index)},
        });
        (name.clone(), body)
    });
    json!({
        "cluster_uuid": uuid(state),
        "cluster_uuid_committed": !state.cluster_uuid.is_empty(),
        "cluster_coordination": {
            "term": state.term,
            "last_committed_config": state.last_committed_config,
            "last_accepted_config": state.last_accepted_config,
            "voting_config_exclusions": exclusions,
        },
        "indices": indices.collect::<Map<_, _>>(),
    })
}

fn blocks(state: &State) -> Value {
    let closed = json!({"4": {
        "description": "index closed", "retryable": false, "levels": ["read", "write"],
    }});
    let closed: Map<_, _> =
        state.closed.keys().map(|name| (name.clone(), closed.clone())).collect();
    if closed.is_empty() { json!({}) } else { json!({"indices": closed}) }
}

fn routing_table(state: &State) -> Value {
    let indices = state.indices.iter().map(|(name, index)| {
        let shards = index.shards.iter().enumerate().map(|(number, shard)| {
            // The engines list a copy that moves where it is.
            let shown = shard.copies.iter().filter(|copy| copy.moves_from.is_none());
            let copies: Vec<Value> = shown.map(|copy| routed(name, number, shard, copy)).collect();
            (number.to_string(), json!(copies))
        });
        (name.clone(), json!({"shards": shards.collect::<Map<_, _>>()}))
    });
    json!({"indices": indices.collect::<Map<_, _>>()})
}

fn routed(index: &str, number: usize, shard: &Shard, copy: &ShardCopy) -> Value {
    let moves_to = copy.started_on().and_then(|node| shard.moves_to(node));
    let doing = match &copy.place {
        CopyState::Unassigned { .. } => "UNASSIGNED",
        CopyState::Initializing { .. } => "INITIALIZING",
        CopyState::Started { .. } if moves_to.is_some() => "RELOCATING",
        CopyState::Started { .. } => "STARTED",
    };
    let mut routed = json!({
        "state": doing,
        "primary": copy.primary,
        "node": copy.node(),
        "relocating_node": moves_to,
        "shard": number,
        "index": index,
    });
    if let CopyState::Unassigned { reason, delayed_ms, .. } = &copy.place {
        routed["unassigned_info"] = json!({"reason": reason, "delayed": delayed_ms.is_some()});
    }
    routed
}

// `/_cluster/settings`.

impl Node {
    pub(super) fn settings(&self, request: &Request) -> Answered {
        let state = self.state(request)?;
        let show = |settings| shown(settings, request.flag("flat_settings"));
        let mut body = json!({
            "persistent": show(&state.persistent),
            "transient": show(&state.transient),
        });
        if request.flag("include_defaults") {
            let key = crate::engine::cluster::ALLOCATION.to_owned();
            let defaults = BTreeMap::from([(key, self.config.allocation.clone())]);
            body["defaults"] = show(&defaults);
        }
        Ok(Answer::json(200, body))
    }

    pub(super) fn put_settings(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let changes = |scope: &str| changes(body.get(scope).unwrap_or(&Value::Null));
        let (persistent, transient) = (changes("persistent"), changes("transient"));
        let set = |changes: &Changes| -> BTreeMap<String, String> {
            let set = changes.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
            set.collect()
        };
        let flat = request.flag("flat_settings");
        let answer = json!({
            "acknowledged": true,
            "persistent": shown(&set(&persistent), flat),
            "transient": shown(&set(&transient), flat),
        });
        self.cluster.command(Command::PutSettings { persistent, transient })?;
        Ok(Answer::json(200, answer))
    }
}

/// Settings as a flat object, or as nested ones.
pub(super) fn shown(settings: &BTreeMap<String, String>, flat: bool) -> Value {
    let mut shown = json!({});
    for (key, value) in settings {
        let pointer: Vec<&str> = if flat { vec![key] } else { key.split('.').collect() };
        let mut inner = &mut shown;
        for part in pointer {
            // If a setting is also the prefix of another one, it is left out.
            if !inner.is_object() {
                *inner = json!({});
            }
            inner = &mut inner[part];
        }
        *inner = json!(value);
    }
    shown
}

/// The changes in a body of flat or nested settings; `null` removes. Values become strings.
pub(super) fn changes(body: &Value) -> Changes {
    let mut changes = Changes::new();
    flatten("", body, &mut changes);
    changes
}

fn flatten(prefix: &str, value: &Value, changes: &mut Changes) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let set = match value {
            Value::Object(_) => {
                flatten(&key, value, changes);
                continue;
            }
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        changes.insert(key, set);
    }
}

/// A setting of an index that is a number.
pub(super) fn number(changes: &Changes, name: &str) -> Result<Option<usize>, Failure> {
    let Some(Some(text)) = changes.get(name) else { return Ok(None) };
    let reason = || format!("Failed to parse value [{text}] for setting [index.{name}]");
    text.parse().map(Some).map_err(|_| Failure::new(400, "illegal_argument_exception", reason()))
}

// `/_cluster/voting_config_exclusions`.

impl Node {
    /// Answers once the nodes of these names are excluded.
    pub(super) fn exclude_votes(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let names = request.query.get("node_names").map(String::as_str).unwrap_or_default();
        let names = names.split(',').map(str::to_owned).collect();
        Ok(Answer::json(200, self.cluster.command(Command::ExcludeVotes { names })?))
    }

    /// Removes every exclusion.
    pub(super) fn clear_votes(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        Ok(Answer::json(200, self.cluster.command(Command::ClearVotes)?))
    }
}
