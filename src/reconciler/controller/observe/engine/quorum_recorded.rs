//! The quorum of clusters as real engines described them.

use std::collections::BTreeSet;

use super::{engine, names};
use stayput_reconciler::engine_client::tests::{ALL, topology_of};
use stayput_reconciler::engine_client::{Topology, Voting as Read};
use crate::rules::{Electorate, Votes};
use crate::{Engine, Node, Voting};

/// What an engine said, as the rule sees it.
fn seen(topology: Topology) -> Engine {
    let node = |node: stayput_reconciler::engine_client::Node| Node {
        id: node.id,
        name: node.name,
        ephemeral_id: node.ephemeral_id,
        roles: node.roles.unwrap_or_default(),
        zone: None,
        version: String::new(),
    };
    let voting = match topology.voting {
        Read::Configurations { committed, accepted, exclusions } => {
            Voting::Configurations { committed, accepted, excluded: exclusions }
        }
        Read::MinimumMasterNodes(minimum) => Voting::MinimumMasterNodes(minimum),
    };
    Engine {
        nodes: topology.nodes.into_iter().map(node).collect(),
        master: topology.elected_master,
        voting: Ok(voting),
        ..engine("")
    }
}

fn without(engine: &Engine, candidate: &str, down: &str) -> Votes {
    Electorate::of(engine).without(candidate, &names(down), None)
}

/// Three masters on each but the one that was recorded alone.
#[test]
fn one_of_three_may_go_a_second_may_not_and_one_alone_may_not() {
    for recorded in ALL {
        let engine = seen(topology_of(recorded, "state"));
        if engine.nodes.len() == 1 {
            assert!(matches!(without(&engine, "logs-0", ""), Votes::Lost(_)), "{recorded}");
            continue;
        }
        for node in ["logs-0", "logs-1", "logs-2"] {
            assert_eq!(without(&engine, node, ""), Votes::Kept, "{recorded}");
            let other = if node == "logs-0" { "logs-1" } else { "logs-0" };
            assert!(matches!(without(&engine, node, other), Votes::Lost(_)), "{recorded}");
        }
    }
}

/// The same recordings with the configurations two masters have, and one of them excluded.
#[test]
fn of_two_masters_the_one_with_the_vote_hands_it_over() {
    let mut asked = 0;
    for recorded in ALL {
        let mut engine = seen(topology_of(recorded, "state"));
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
        engine.master = Some(first.clone());
        engine.voting = voting(&first, "");
        assert_eq!(without(&engine, "logs-1", ""), Votes::Kept, "{recorded}");
        let handed = Votes::HandedOverFirst("logs-1".into());
        assert_eq!(without(&engine, "logs-0", ""), handed, "{recorded}");
        assert!(matches!(without(&engine, "logs-0", "logs-1"), Votes::Lost(_)), "{recorded}");
        engine.voting = voting(&first, "logs-0");
        assert!(matches!(without(&engine, "logs-1", ""), Votes::Lost(_)), "{recorded}");
        engine.voting = voting(&second, "logs-0");
        assert_eq!(without(&engine, "logs-0", ""), Votes::Kept, "{recorded}");
        assert!(matches!(without(&engine, "logs-1", ""), Votes::Lost(_)), "{recorded}");
        asked += 1;
    }
    assert_eq!(asked, 3);
}
