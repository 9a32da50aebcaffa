//! Why a shard stays on its node.

use serde_json::{Value, json};

use super::super::{Shard, ShardState};
use super::*;

fn answer(can_move: &str, decisions: Value) -> Option<String> {
    let body = json!({
        "index": "docs",
        "shard": 0,
        "primary": false,
        "can_remain_on_current_node": "no",
        "can_move_to_other_node": can_move,
        "move_explanation": "cannot move shard to another node, even though it is not allowed to \
                             remain on its current node",
        "node_allocation_decisions": decisions,
    });
    crate::shards::parse_explanation(&made_up(200, &body.to_string())).expect("it is read")
}

fn node(deciders: &[(&str, &str)]) -> Value {
    let decider = |(decider, explanation): &(&str, &str)| json!({"decider": decider, "decision": "NO", "explanation": explanation});
    json!({"node_decision": "no", "deciders": deciders.iter().map(decider).collect::<Vec<_>>()})
}

const OURS: (&str, &str) = (
    "filter",
    "node matches cluster setting [cluster.routing.allocation.exclude] filters [_name:\"logs-2\"]",
);

#[test]
fn a_shard_that_is_going_to_move_has_no_obstacle() {
    assert_eq!(answer("yes", json!([])), None);
    assert_eq!(answer("not_preferred", json!([])), None);
}

#[test]
fn a_shard_that_waits_for_its_turn_has_no_obstacle() {
    let taken = node(&[("same_shard", "a copy of this shard is already allocated to this node")]);
    for decision in ["throttled", "yes", "not_preferred"] {
        let waits = json!({"node_decision": decision, "deciders": [{
            "decider": "throttling", "decision": "THROTTLE",
            "explanation": "reached the limit of incoming shard recoveries [2]",
        }]});
        assert_eq!(answer("no", json!([taken, waits])), None, "{decision}");
    }
    assert!(answer("no", json!([taken])).is_some());
}

#[test]
fn the_obstacle_on_most_nodes_is_named_and_our_own_exclusion_is_not() {
    let full = "the node is above the high watermark cluster setting \
                [cluster.routing.allocation.disk.watermark.high=90%]";
    let here =
        |node: &str| format!("a copy of this shard is already allocated to this node [{node}]");
    let said = answer(
        "no",
        json!([
            node(&[OURS, ("same_shard", &here("a"))]),
            node(&[("same_shard", &here("b"))]),
            node(&[("disk_threshold", full)]),
        ]),
    );
    let expected = format!(
        "[docs][0] cannot move: other nodes have a copy of it already: lower \
         index.number_of_replicas of this index, or keep more nodes; {full}"
    );
    assert_eq!(said, Some(expected));
    let alone = answer("no", json!([node(&[OURS])])).expect("an obstacle");
    assert!(alone.contains("even though it is not allowed to remain"), "{alone}");
}

#[test]
fn a_replica_is_named_with_its_node() {
    let shard = |primary| Shard {
        index: "docs".into(),
        number: 3,
        primary,
        search_only: false,
        state: ShardState::Started,
        node_name: Some("logs-2".into()),
        relocating_to: None,
    };
    let asked = |primary| {
        let (line, body) = crate::shards::explain_call(&shard(primary)).as_recorded();
        assert_eq!(line, "GET /_cluster/allocation/explain");
        serde_json::from_str::<Value>(&body).expect("JSON")
    };
    let replica = json!({"index": "docs", "shard": 3, "primary": false, "current_node": "logs-2"});
    assert_eq!(asked(false), replica);
    assert_eq!(asked(true), json!({"index": "docs", "shard": 3, "primary": true}));
}
