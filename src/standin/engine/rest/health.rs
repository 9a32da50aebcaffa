//! `/_cluster/health`: the health of the cluster, at once or when conditions are met.

use std::str::FromStr;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{CopyState, EXCLUDED, Failure, State, excluded};
use crate::engine::config::Distribution;

/// Numbers of copies by their state.
#[derive(Default)]
struct Counts {
    total: usize,
    primaries: usize,
    started: usize,
    initializing: usize,
    unassigned: usize,
    delayed: usize,
    relocating: usize,
    unassigned_primaries: usize,
    inactive_primaries: usize,
}

impl Counts {
    fn of<'a>(state: &State, indices: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        let indices = indices.filter_map(|name| state.indices.get(name));
        for copy in indices.flat_map(|index| &index.shards).flat_map(|shard| &shard.copies) {
            if copy.moves_from.is_some() {
                counts.relocating += 1;
                continue;
            }
            counts.total += 1;
            match &copy.place {
                CopyState::Started { .. } => {
                    counts.started += 1;
                    counts.primaries += usize::from(copy.primary);
                }
                CopyState::Initializing { .. } => counts.initializing += 1,
                CopyState::Unassigned { delayed_ms, .. } => {
                    counts.unassigned += 1;
                    counts.delayed += usize::from(delayed_ms.is_some());
                    counts.unassigned_primaries += usize::from(copy.primary);
                }
            }
            counts.inactive_primaries += usize::from(copy.primary && copy.started_on().is_none());
        }
        counts
    }

    fn status(&self) -> &'static str {
        if self.inactive_primaries > 0 {
            "red"
        } else if self.started < self.total {
            "yellow"
        } else {
            "green"
        }
    }
}

impl Node {
    pub(super) fn health(&self, request: &Request, index: Option<&str>) -> Answered {
        if !self.is_ready() {
            let state = self.cluster.local_state();
            return Ok(Answer::json(503, self.health_body(&state, request, index, false)));
        }
        let timeout = request.time("timeout", DEFAULT_TIMEOUT)?;
        if request.flag("local") {
            let state = self.cluster.local_state();
            return Ok(Answer::json(200, self.health_body(&state, request, index, false)));
        }
        let wanted = Wanted::read(request)?;
        let began = Instant::now();
        self.cluster.state(request.master_timeout(timeout)?)?;
        let mut seen = None;
        let met = self.cluster.wait(began + timeout, |state| {
            let met = index.is_none_or(|name| state.indices.contains_key(name))
                && wanted.is_met(state, &counts(state, index));
            seen = Some(state.clone());
            met.then_some(())
        });
        let state = seen.ok_or_else(Failure::no_master)?;
        let status = if met.is_some() { 200 } else { 408 };
        Ok(Answer::json(status, self.health_body(&state, request, index, met.is_none())))
    }

    /// The status of one index.
    pub(super) fn index_status(state: &State, name: &str) -> &'static str {
        Counts::of(state, [name].into_iter()).status()
    }

    fn health_body(
        &self,
        state: &State,
        request: &Request,
        index: Option<&str>,
        timed_out: bool,
    ) -> Value {
        let counts = counts(state, index);
        let missing = index.is_some_and(|name| !state.indices.contains_key(name));
        let no_master = state.master.is_none();
        // The state has not been recovered yet.
        let percent = match (counts.total, state.cluster_uuid.is_empty()) {
            (0, true) => json!("NaN"),
            (0, false) => json!(100.0),
            #[expect(clippy::cast_precision_loss, reason = "no cluster has that many shards")]
            (total, _) => json!(counts.started as f64 * 100.0 / total as f64),
        };
        let red = missing || no_master || !self.is_ready();
        let mut body = json!({
            "cluster_name": self.config.cluster_name,
            "status": if red { "red" } else { counts.status() },
            "timed_out": timed_out,
            "number_of_nodes": state.nodes.len(),
            "number_of_data_nodes": state.nodes.values().filter(|node| node.is_data()).count(),
            "active_primary_shards": counts.primaries,
            "active_shards": counts.started,
            "relocating_shards": counts.relocating,
            "initializing_shards": counts.initializing,
            "unassigned_shards": counts.unassigned,
            "delayed_unassigned_shards": counts.delayed,
            "number_of_pending_tasks": 0,
            "number_of_in_flight_fetch": 0,
            "task_max_waiting_in_queue_millis": 0,
            "active_shards_percent_as_number": percent,
        });
        match self.config.behaviour.distribution {
            Distribution::OpenSearch => {
                body["discovered_master"] = json!(!no_master);
                body["discovered_cluster_manager"] = json!(!no_master);
            }
            Distribution::Elasticsearch => {
                body["unassigned_primary_shards"] = json!(counts.unassigned_primaries);
            }
        }
        if request.query.get("level").is_some_and(|level| level == "indices") {
            let names = state.indices.iter().filter(|(name, _)| index.is_none_or(|it| it == *name));
            body["indices"] = names
                .map(|(name, found)| {
                    let counts = Counts::of(state, [name.as_str()].into_iter());
                    let body = json!({
                        "status": counts.status(),
                        "number_of_shards": found.shards.len(),
                        "number_of_replicas": found.replicas(),
                        "active_primary_shards": counts.primaries,
                        "active_shards": counts.started,
                        "relocating_shards": counts.relocating,
                        "initializing_shards": counts.initializing,
                        "unassigned_shards": counts.unassigned,
                    });
                    (name.clone(), body)
                })
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        body
    }
}

fn counts(state: &State, index: Option<&str>) -> Counts {
    match index {
        Some(name) => Counts::of(state, [name].into_iter()),
        None => Counts::of(state, state.indices.keys().map(String::as_str)),
    }
}

/// The `wait_for_*` parameters. `wait_for_events` is always met: nothing is queued here.
struct Wanted {
    status: usize,
    nodes: Option<(Relation, usize)>,
    no_initializing: bool,
    /// `None` means all copies.
    active: Option<usize>,
}

/// The best status first.
const STATUSES: [&str; 3] = ["green", "yellow", "red"];

impl Wanted {
    fn read(request: &Request) -> Result<Self, Failure> {
        let illegal = |name: &str, value: &str| {
            let reason = format!("illegal value [{value}] for parameter [{name}]");
            Failure::new(400, "illegal_argument_exception", reason)
        };
        let status = match request.query.get("wait_for_status") {
            None => STATUSES.len(),
            Some(wanted) => {
                let found = STATUSES.iter().position(|status| status == wanted);
                found.ok_or_else(|| illegal("wait_for_status", wanted))?
            }
        };
        let nodes = request.query.get("wait_for_nodes");
        let nodes = nodes.map(|text| relation(text).ok_or_else(|| illegal("wait_for_nodes", text)));
        let active = match request.query.get("wait_for_active_shards").map(String::as_str) {
            None => Some(0),
            Some("all") => None,
            Some(number) => Some(
                usize::from_str(number).map_err(|_| illegal("wait_for_active_shards", number))?,
            ),
        };
        let no_initializing = request.flag("wait_for_no_initializing_shards");
        Ok(Self { status, nodes: nodes.transpose()?, no_initializing, active })
    }

    fn is_met(&self, state: &State, counts: &Counts) -> bool {
        let status = STATUSES.iter().position(|status| *status == counts.status());
        let nodes = state.nodes.len();
        status.is_some_and(|status| status <= self.status)
            && self.nodes.is_none_or(|(relation, wanted)| relation(nodes, wanted))
            && !(self.no_initializing && counts.initializing > 0)
            && counts.started >= self.active.unwrap_or(counts.total)
    }
}

type Relation = fn(usize, usize) -> bool;

/// `3`, `>=3`, `ge(3)` and the like.
fn relation(text: &str) -> Option<(Relation, usize)> {
    let relations: [(&str, &str, Relation); 4] = [
        (">=", "ge(", |there, wanted| there >= wanted),
        ("<=", "le(", |there, wanted| there <= wanted),
        (">", "gt(", |there, wanted| there > wanted),
        ("<", "lt(", |there, wanted| there < wanted),
    ];
    for (sign, word, relation) in relations {
        let number = text.strip_prefix(sign).or_else(|| text.strip_prefix(word)?.strip_suffix(')'));
        if let Some(number) = number {
            return Some((relation, number.trim().parse().ok()?));
        }
    }
    Some((|there, wanted| there == wanted, text.trim().parse().ok()?))
}

// `/_cluster/allocation/explain`: why a copy does not move.

impl Node {
    pub(super) fn explain(&self, request: &Request) -> Answered {
        let state = self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let name = body["index"].as_str().unwrap_or_default();
        let index = state.indices.get(name).ok_or_else(|| Failure::no_such_index(name))?;
        let number = body["shard"].as_u64().and_then(|number| usize::try_from(number).ok());
        let shard = number.and_then(|number| index.shards.get(number)).ok_or_else(|| {
            Failure::new(400, "illegal_argument_exception", "no such shard".to_owned())
        })?;
        let on = body["current_node"].as_str();
        let is_asked = |id: &str| {
            let node = state.nodes.get(id);
            on.is_some_and(|on| node.is_some_and(|node| node.name == on || node.id == on))
        };
        let current = match body["primary"].as_bool() {
            Some(true) => shard.primary_node(),
            _ => shard.started().find(|id| is_asked(id)),
        };
        let excluded = excluded(&state);
        let others = state.nodes.values().filter(|node| node.is_data());
        let mut can_move = "no";
        let mut decisions = Vec::new();
        for node in others.filter(|node| Some(node.id.as_str()) != current) {
            let mut deciders: Vec<Value> = Vec::new();
            let mut refuse = |decider: &str, explanation: String| {
                deciders.push(json!({
                    "decider": decider,
                    "decision": "NO",
                    "explanation": explanation,
                }));
            };
            if excluded.contains(&node.id) {
                let (setting, _) = EXCLUDED.rsplit_once('.').unwrap_or_default();
                refuse("filter", format!("node matches cluster setting [{setting}] filters"));
            }
            if shard.copies.iter().any(|copy| copy.node() == Some(&node.id)) {
                let reason = "a copy of this shard is already allocated to this node";
                refuse("same_shard", reason.to_owned());
            }
            let decision = if deciders.is_empty() { "yes" } else { "no" };
            if deciders.is_empty() {
                can_move = "yes";
            }
            decisions.push(json!({
                "node_id": node.id,
                "node_name": node.name,
                "node_decision": decision,
                "deciders": deciders,
            }));
        }
        Ok(Answer::json(
            200,
            json!({
                "index": name,
                "shard": number,
                "primary": body["primary"],
                "current_state": "started",
                "can_remain_on_current_node": "no",
                "can_move_to_other_node": can_move,
                "move_explanation": "cannot move shard to another node",
                "node_allocation_decisions": decisions,
            }),
        ))
    }
}
