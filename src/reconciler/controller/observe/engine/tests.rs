//! Stale, partial or odd answers of an engine, and the snapshot made from them.

use super::*;
use crate::engine_client::ShardState;
use stayput_restart::Color;

/// A node with these roles, or one that has not reported its details.
fn node(name: &str, ephemeral_id: &str, roles: Option<&[&str]>) -> engine_client::Node {
    engine_client::Node {
        id: format!("id-{name}"),
        name: name.into(),
        ephemeral_id: ephemeral_id.into(),
        transport_address: "10.0.0.7:9300".into(),
        attributes: [("zone".to_owned(), "z1".to_owned())].into(),
        roles: roles.map(|roles| roles.iter().map(|role| (*role).to_owned()).collect()),
        version: roles.map(|_| "2.19.3".parse().unwrap()),
        jvm_start_ms: None,
    }
}

fn topology(nodes: Vec<engine_client::Node>) -> engine_client::Topology {
    engine_client::Topology {
        cluster_uuid: Some("uuid".into()),
        version: 7,
        elected_master: None,
        voting: engine_client::Voting::MinimumMasterNodes(1),
        nodes,
        shards: vec![],
        recovered: true,
    }
}

/// The cluster state lists it, and the list of node details, read at the same time, lacks it.
#[test]
fn a_node_that_has_joined_between_two_reads_is_waited_for() {
    let mut view = EngineView::default();
    let seen = topology(vec![node("logs-0", "e0", Some(&["data"])), node("logs-1", "e1", None)]);
    let error = view.nodes(&seen, "zone").expect_err("it is not known what logs-1 is");
    assert!(error.to_string().contains("logs-1, which has not reported its roles"), "{error}");
    assert!(!error.is_about_credentials());
    // At the next observation it has.
    let seen = topology(vec![node("logs-1", "e1", Some(&["data", "quantum"]))]);
    let nodes = view.nodes(&seen, "zone").expect("all have reported");
    assert_eq!(nodes[0].roles, ["data", "quantum"].map(str::to_owned).into());
    assert_eq!((nodes[0].zone.as_deref(), nodes[0].version.as_str()), (Some("z1"), "2.19.3"));
}

#[test]
fn a_process_that_hangs_is_what_it_said_before_and_another_one_is_not() {
    let mut view = EngineView::default();
    let reported = topology(vec![node("logs-0", "e0", Some(&["data"]))]);
    let before = view.nodes(&reported, "zone").expect("it has reported");
    let silent = |ephemeral| topology(vec![node("logs-0", ephemeral, None)]);
    // However often it hangs.
    for _ in 0..2 {
        assert_eq!(view.nodes(&silent("e0"), "zone").ok().as_ref(), Some(&before));
    }
    // Its config may have given the next process other roles.
    assert!(view.nodes(&silent("e1"), "zone").is_err());
}

#[test]
fn two_nodes_of_one_name_are_two_nodes() {
    let mut view = EngineView::default();
    let twice =
        topology(vec![node("logs-0", "e0", Some(&["data"])), node("logs-0", "e9", Some(&[]))]);
    let nodes = view.nodes(&twice, "zone").expect("both have reported");
    let seen: Vec<_> = nodes.iter().map(|node| (&*node.ephemeral_id, node.roles.len())).collect();
    assert_eq!(seen, [("e0", 1), ("e9", 0)]);
}

/// Its data is where it was until the move is over.
#[test]
fn a_relocating_copy_is_a_started_one_at_its_source() {
    let shard = |state, node: Option<&str>| engine_client::Shard {
        index: "docs".into(),
        number: 3,
        primary: true,
        state,
        node_name: node.map(Into::into),
        relocating_to: Some("logs-1".into()),
    };
    let moved = convert::shard(&shard(ShardState::Relocating, Some("logs-0")));
    assert_eq!((moved.started, moved.node.as_deref(), moved.shard), (true, Some("logs-0"), 3));
    for state in [ShardState::Initializing, ShardState::Unassigned, ShardState::Unknown] {
        assert!(!convert::shard(&shard(state, Some("logs-0"))).started, "{state:?}");
    }
}

#[test]
fn a_health_that_timed_out_says_so_and_no_count_is_beyond_a_number() {
    let answer = engine_client::Health {
        cluster_name: "logs".into(),
        status: engine_client::Color::Unknown,
        timed_out: true,
        number_of_nodes: 3,
        number_of_data_nodes: u64::MAX,
        initializing_shards: 1,
        relocating_shards: 2,
        unassigned_shards: u64::MAX,
        unassigned_primary_shards: None,
        delayed_unassigned_shards: 3,
        number_of_pending_tasks: 9,
        number_of_in_flight_fetch: 4,
    };
    let health = health(&answer);
    assert_eq!((health.color, health.timed_out), (Color::Unknown, true));
    assert_eq!((health.data_nodes, health.unassigned), (u32::MAX, u32::MAX));
    assert_eq!((health.initializing, health.relocating), (1, 2));
    assert_eq!((health.delayed, health.in_flight_fetch), (3, 4));
}
