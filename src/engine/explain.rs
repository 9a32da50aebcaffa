//! Asks the engine why a shard does not move away from its node.

use serde::Deserialize;
use serde_json::json;

use super::answer::Answer;
use super::limited;
use super::transport::Call;
use super::{EngineClient, EngineError, Shard};

/// Limit of the different obstacles that a message names.
const NAMED: usize = 2;

impl EngineClient {
    /// Reason why this copy stays on its node: the engine's words, with the settings that they name; `None`
    /// if it is going to move.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn why_it_stays(&self, shard: &Shard) -> Result<Option<String>, EngineError> {
        parse(&self.transport.send(&explain_call(shard)).await?)
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

pub(super) fn parse(answer: &Answer) -> Result<Option<String>, EngineError> {
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
