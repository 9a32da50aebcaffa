//! The quorum rule on clusters as real engines described them, through the conversion that an
//! observation uses.

use std::collections::BTreeSet;

use super::ALL;
use super::cluster::topology_of;
use crate::convert;
use stayput_restart::{
    Allocation, Code, Color, Engine, Health, QuorumAfterStop, Unknown, Voting, quorum_after_stop,
};

/// The cluster of a recorded answer, as an observation has it.
fn recorded_cluster(recorded: &str) -> Engine {
    let topology = topology_of(recorded, "state");
    let nodes = topology.nodes.iter().map(|node| convert::node(node, "zone")).collect();
    Engine {
        version: recorded.to_owned(),
        cluster_uuid: topology.cluster_uuid.expect("a cluster"),
        nodes,
        elected_master: topology.elected_master,
        health: Ok(Health {
            color: Color::Green,
            timed_out: false,
            data_nodes: 3,
            initializing: 0,
            relocating: 0,
            unassigned: 0,
            delayed: 0,
            in_flight_fetch: 0,
        }),
        voting: Ok(topology.voting.clone()),
        searchable_snapshots: Ok(Default::default()),
        immovable: Default::default(),
        shards: Ok(convert::shards(&topology.shards)),
        allocation: Ok(Allocation::default()),
        records: Err(Unknown { message: "not recorded".to_owned() }),
    }
}

fn names(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

fn without(engine: &Engine, candidate: &str, down: &str) -> QuorumAfterStop {
    quorum_after_stop("search/logs", engine, candidate, &names(down))
}

/// Each recording has three masters but the one that was recorded alone.
#[test]
fn one_of_three_may_go_a_second_may_not_and_one_alone_may_not() {
    for recorded in ALL {
        let engine = recorded_cluster(recorded);
        if engine.nodes.len() == 1 {
            assert!(
                matches!(without(&engine, "logs-0", ""), QuorumAfterStop::Lost(Code::Quorum, _)),
                "{recorded}"
            );
            continue;
        }
        for node in ["logs-0", "logs-1", "logs-2"] {
            assert_eq!(without(&engine, node, ""), QuorumAfterStop::Kept, "{recorded}");
            let other = if node == "logs-0" { "logs-1" } else { "logs-0" };
            assert!(
                matches!(without(&engine, node, other), QuorumAfterStop::Lost(Code::Quorum, _)),
                "{recorded}"
            );
        }
    }
}

/// The recordings with the voting configurations of two masters, one of them excluded.
#[test]
fn of_two_masters_the_one_with_the_vote_hands_it_over() {
    let mut asked = 0;
    for recorded in ALL {
        let mut engine = recorded_cluster(recorded);
        let Ok(Voting::Configurations { .. }) = engine.voting else { continue };
        engine.nodes.retain(|node| node.name != "logs-2");
        let id = |name: &str| {
            let node = engine.nodes.iter().find(|node| node.name == name);
            node.map(|node| node.id.clone())
        };
        let (Some(first), Some(second)) = (id("logs-0"), id("logs-1")) else { continue };
        let voting = |voter: &str, excluded: &str| {
            let voters = BTreeSet::from([voter.to_owned()]);
            Ok(Voting::Configurations {
                committed: voters.clone(),
                accepted: voters,
                excluded: names(excluded),
            })
        };
        engine.elected_master = Some(first.clone());
        engine.voting = voting(&first, "");
        assert_eq!(without(&engine, "logs-1", ""), QuorumAfterStop::Kept, "{recorded}");
        let expected = QuorumAfterStop::KeptByHandover("logs-1".into());
        assert_eq!(without(&engine, "logs-0", ""), expected, "{recorded}");
        assert!(
            matches!(without(&engine, "logs-0", "logs-1"), QuorumAfterStop::Lost(Code::Quorum, _)),
            "{recorded}"
        );
        engine.voting = voting(&first, "logs-0");
        assert!(
            matches!(without(&engine, "logs-1", ""), QuorumAfterStop::Lost(Code::Quorum, _)),
            "{recorded}"
        );
        engine.voting = voting(&second, "logs-0");
        assert_eq!(without(&engine, "logs-0", ""), QuorumAfterStop::Kept, "{recorded}");
        assert!(
            matches!(without(&engine, "logs-1", ""), QuorumAfterStop::Lost(Code::Quorum, _)),
            "{recorded}"
        );
        asked += 1;
    }
    assert_eq!(asked, 4);
}
