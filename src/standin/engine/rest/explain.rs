//! `/_cluster/allocation/explain`: why a copy does not move.

use serde_json::{Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{EXCLUDED, Failure, excluded};

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
