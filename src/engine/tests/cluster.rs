//! Health, members and votes, read from recorded answers.

use std::collections::BTreeSet;

use super::super::topology::{self, Topology};
use super::super::{Color, EngineError, Member, Voting, health, shards};
use super::*;

#[track_caller]
pub(super) fn topology_of(engine: &str, state: &str) -> Topology {
    let minimum = (engine == ELASTICSEARCH_6).then(|| {
        let answer = answer_to(&topology::minimum_call(), engine, "minimum");
        topology::parse_minimum(&answer).unwrap()
    });
    let answer = answer_to(&topology::state_call(), engine, state);
    let mut topology = topology::parse(&answer, minimum).unwrap();
    if topology.recovered {
        let routing = state.replace("state", "routing");
        let answer = answer_to(&shards::routing_call(), engine, &routing);
        let routing = shards::parse(&answer, &topology.nodes).unwrap();
        topology.shards = routing.shards;
        topology.immovable = routing.immovable;
    }
    topology.add_details(
        crate::nodes::parse_details(&answer_to(&crate::nodes::details_call(), engine, "details"))
            .unwrap(),
    );
    topology
}

#[test]
fn health_is_read_from_every_engine() {
    for (engine, nodes, unassigned) in [
        (OPENSEARCH_2, 3, 1),
        (OPENSEARCH_3, 1, 8),
        (ELASTICSEARCH_6, 3, 1),
        (ELASTICSEARCH_7, 3, 1),
        (ELASTICSEARCH_8, 3, 1),
        (ELASTICSEARCH_9, 3, 1),
    ] {
        let health = health::parse(&answer_to(&health::call(), engine, "health")).unwrap();
        assert_eq!((health.color, health.timed_out), (Color::Yellow, false), "{engine}");
        assert_eq!((health.data_nodes, health.unassigned), (nodes, unassigned));
        assert_eq!((health.initializing, health.relocating), (0, 0));
        assert_eq!((health.delayed, health.in_flight_fetch), (0, 0));
    }
}

#[test]
fn a_wait_that_was_too_short_is_an_answer() {
    for engine in ALL {
        let answer = recorded(engine, "health_408");
        assert_eq!(answer.status, 408);
        let health = health::parse(&answer).unwrap();
        assert_eq!((health.timed_out, health.color), (true, Color::Yellow), "{engine}");
    }
    // But not any 408 is one.
    assert!(matches!(health::parse(&made_up(408, "timeout")), Err(EngineError::Protocol(_))));
}

#[test]
fn a_relocating_copy_is_counted() {
    for engine in [OPENSEARCH_2, ELASTICSEARCH_8] {
        let call = health::call();
        let health = health::parse(&answer_to(&call, engine, "health_relocating")).unwrap();
        assert_eq!(health.relocating, 1, "{engine}");
    }
}

#[test]
fn a_colour_nobody_knows_is_none_of_the_three() {
    let body = String::from_utf8(recorded(OPENSEARCH_2, "health").body.into()).unwrap();
    let health = health::parse(&made_up(200, &body.replace("yellow", "mauve"))).unwrap();
    assert_eq!(health.color, Color::Unknown);
}

#[test]
fn a_health_that_timed_out_says_so_and_no_count_is_beyond_a_number() {
    let body = serde_json::json!({
        "status": "RED", "timed_out": true, "number_of_data_nodes": u64::MAX,
        "initializing_shards": 1, "relocating_shards": 2, "unassigned_shards": u64::MAX,
        "delayed_unassigned_shards": 3, "number_of_in_flight_fetch": 4,
    });
    let health = health::parse(&made_up(200, &body.to_string())).unwrap();
    assert_eq!((health.color, health.timed_out), (Color::Red, true));
    assert_eq!((health.data_nodes, health.unassigned), (u32::MAX, u32::MAX));
    assert_eq!((health.initializing, health.relocating), (1, 2));
    assert_eq!((health.delayed, health.in_flight_fetch), (3, 4));
}

#[test]
fn without_a_master_the_engine_refuses_and_the_sentence_says_so() {
    for engine in ALL.into_iter().filter(|engine| *engine != OPENSEARCH_3) {
        let health = health::parse(&answer_to(&health::call(), engine, "health_no_master"));
        let Err(EngineError::Refused { status, reason, message }) = health else {
            panic!("{engine}: {health:?}");
        };
        assert_eq!(status, 503);
        assert!(reason.ends_with("_not_discovered_exception"), "{reason}");
        assert!(message.contains("http://10.0.0.7:9200 to GET /_cluster/health"), "{message}");
        assert!(message.contains("have an elected master?"), "{message}");
        let state = answer_to(&topology::state_call(), engine, "state_no_master");
        let state = topology::parse(&state, None);
        assert!(matches!(state, Err(EngineError::Refused { status: 503, .. })), "{state:?}");
    }
}

#[test] // proves RESTART-149
fn a_cluster_that_has_not_read_its_disks_yet_says_so() {
    for engine in [OPENSEARCH_2, ELASTICSEARCH_8] {
        // It answers as an empty cluster does.
        let empty = topology_of(engine, "state_not_recovered");
        assert_eq!((empty.recovered, empty.nodes.len(), empty.shards.len()), (false, 1, 0));
        assert!(empty.cluster_uuid.is_some(), "{engine}");
    }
    for engine in ALL {
        assert!(topology_of(engine, "state").recovered, "{engine}");
    }
}

#[test]
fn members_are_told_apart_by_both_ids() {
    for engine in ALL {
        let members = answer_to(&crate::nodes::members_call(), engine, "members");
        let members = crate::nodes::parse_members(&members).unwrap();
        let topology = topology_of(engine, "state");
        assert_eq!(members.cluster_uuid, topology.cluster_uuid);
        assert_eq!(members.elected_master, topology.elected_master);
        let nodes: Vec<Member> = topology
            .nodes
            .into_iter()
            .map(|node| Member { id: node.id, name: node.name, ephemeral_id: node.ephemeral_id })
            .collect();
        assert_eq!(members.nodes, nodes);
    }
    let members = crate::nodes::parse_members(&recorded(OPENSEARCH_2, "members")).unwrap();
    assert_eq!(members.cluster_uuid.as_deref(), Some("HHHrgapGQyCXt6wo3163vQ"));
    assert_eq!(members.elected_master.as_deref(), Some("mURN_W7BQPOZ9jeMrDRWgg"));
    let first = Member {
        id: "Xylk0DyHRxi6QGarWKRUMA".into(),
        name: "logs-0".into(),
        ephemeral_id: "cOgUb_HjQIqQ3wFELf-q-g".into(),
    };
    assert_eq!((members.nodes.len(), &members.nodes[0]), (3, &first));
}

#[test]
fn a_master_by_its_newer_name_is_the_same_master() {
    let body = r#"{"cluster_uuid":"_na_","cluster_manager_node":"m","nodes":{}}"#;
    let members = crate::nodes::parse_members(&made_up(200, body)).unwrap();
    assert_eq!((members.cluster_uuid, members.elected_master), (None, Some("m".into())));
}

#[test] // proves UPDATE-34
fn nodes_are_described_as_a_whole() {
    for engine in ALL {
        let topology = topology_of(engine, "state");
        assert!(topology.version > 0);
        for (at, node) in topology.nodes.iter().enumerate() {
            assert_eq!(node.attributes["zone"], node.name.replace("logs-", "z"), "{engine}");
            assert!(node.transport_address.starts_with("127.0.0.1:193"), "{node:?}");
            assert!(at == 0 || topology.nodes[at - 1].id < node.id);
            let roles = node.roles.as_ref().unwrap();
            let master = if engine.starts_with('o') { "cluster_manager" } else { "master" };
            assert!(roles.contains(master) && roles.contains("data"), "{roles:?}");
            assert!(engine.ends_with(&node.version.unwrap().to_string()));
            assert!(node.jvm_start_ms.unwrap() > 1_795_000_000_000, "{node:?}");
            assert!(node.heap_max.unwrap() >= 128 << 20, "{node:?}");
        }
    }
}

#[test] // proves RULE-7
fn the_data_is_where_the_engine_says_whatever_has_told_it_so() {
    for engine in ALL {
        let topology = topology_of(engine, "state");
        let mut paths: Vec<&str> =
            topology.nodes.iter().flat_map(|node| &node.data_paths).map(String::as_str).collect();
        paths.sort_unstable();
        // The third node has no path.data.
        let home = format!("/usr/share/{}/data", engine.split('-').next().unwrap());
        let expected = ["/srv/data-0", "/srv/data-1", &home];
        assert_eq!(paths, expected[..topology.nodes.len()], "{engine}");
    }
    let read = |path: &str| {
        let body = format!(
            r#"{{"nodes":{{"n":{{"version":"8.19.0","roles":[],"jvm":{{"start_time_in_millis":1}}{path}}}}}}}"#
        );
        crate::nodes::parse_details(&made_up(200, &body)).unwrap()["n"].data_paths()
    };
    assert_eq!(read(r#","settings":{"path":{"data":"/a, /b"}}"#), ["/a", "/b"]);
    assert!(read(r#","settings":{}"#).is_empty() && read("").is_empty());
}

#[test]
fn a_node_that_does_not_answer_is_a_node_all_the_same() {
    let state = recorded(OPENSEARCH_2, "state");
    let mut reported = crate::nodes::parse_details(&recorded(OPENSEARCH_2, "details")).unwrap();
    reported.remove("mURN_W7BQPOZ9jeMrDRWgg");
    let mut topology = topology::parse(&state, None).unwrap();
    topology.add_details(reported);
    let silent = &topology.nodes[1];
    assert_eq!((silent.id.as_str(), silent.name.as_str()), ("mURN_W7BQPOZ9jeMrDRWgg", "logs-1"));
    assert_eq!((&silent.roles, silent.version, silent.jvm_start_ms), (&None, None, None));
    assert!(topology.nodes[2].roles.is_some());
    // All of them may be silent: then the filter leaves nothing of the answer.
    assert!(crate::nodes::parse_details(&made_up(200, "{}")).unwrap().is_empty());
}

#[test]
fn a_process_that_hangs_is_what_it_said_before_and_another_one_is_not() {
    let answer = recorded(OPENSEARCH_2, "state");
    let silent = || topology::parse(&answer, None).unwrap();
    let before = topology_of(OPENSEARCH_2, "state");
    // However often it hangs.
    let again = silent().with_details_of(Some(&before));
    let once_more = silent().with_details_of(Some(&again));
    assert_eq!(once_more.nodes, before.nodes);
    // Its config may have given the next process other roles.
    let mut other = silent();
    other.nodes[1].ephemeral_id = "another".into();
    let other = other.with_details_of(Some(&before));
    assert_eq!((&other.nodes[1].roles, &other.nodes[2]), (&None, &before.nodes[2]));
}

#[test]
fn shard_copies_are_those_of_before_only_in_the_same_state_of_the_same_master() {
    let before = topology_of(OPENSEARCH_2, "state");
    let other = |change: fn(&mut Topology)| {
        let mut other = before.clone();
        change(&mut other);
        other.is_state_of(&before)
    };
    assert!(other(|_| {}));
    assert!(!other(|topology| topology.version += 1));
    assert!(!other(|topology| topology.cluster_uuid = None));
    assert!(!other(|topology| topology.elected_master = None));
    assert!(!other(|topology| topology.recovered = false));
    // The same node, started again: Elasticsearch 6 may count from the beginning then.
    assert!(!other(|topology| {
        topology.nodes.iter_mut().for_each(|node| node.ephemeral_id.push('2'));
    }));
}

#[test]
fn votes_are_the_two_configurations() {
    for engine in ALL.into_iter().filter(|engine| *engine != ELASTICSEARCH_6) {
        let topology = topology_of(engine, "state");
        let all: BTreeSet<String> = topology.nodes.iter().map(|node| node.id.clone()).collect();
        let expected = Voting::Configurations {
            committed: all.clone(),
            accepted: all,
            excluded: BTreeSet::new(),
        };
        assert_eq!(topology.voting, expected, "{engine}");
    }
}

#[test]
fn votes_under_way_and_excluded_nodes_are_told() {
    let state = String::from_utf8(recorded(ELASTICSEARCH_7, "state").body.into()).unwrap();
    let state = state
        .replace(
            r#""last_accepted_config":["daihRyA4Rf6C8LUUJWVh1Q","#,
            r#""last_accepted_config":["#,
        )
        .replace(
            r#""voting_config_exclusions":[]"#,
            r#""voting_config_exclusions":[{"node_id":"_absent_","node_name":"logs-0"},
               {"node_id":"lNKeI-30ShiyKbTj1UmaYA","node_name":"_absent_"}]"#,
        );
    let topology = topology::parse(&made_up(200, &state), None).unwrap();
    let Voting::Configurations { committed, accepted, excluded } = topology.voting else {
        panic!("{:?}", topology.voting);
    };
    assert_eq!((committed.len(), accepted.len()), (3, 2));
    assert!(!accepted.contains("daihRyA4Rf6C8LUUJWVh1Q"));
    let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
    assert_eq!(excluded, ["lNKeI-30ShiyKbTj1UmaYA", "logs-0"]);
}

#[test]
fn elasticsearch_6_counts_masters() {
    assert_eq!(topology_of(ELASTICSEARCH_6, "state").voting, Voting::MinimumMasterNodes(2));
    let minimum = |body: &str| topology::parse_minimum(&made_up(200, body));
    let set = r#"{"persistent":{"discovery":{"zen":{"minimum_master_nodes":"3"}}},
        "defaults":{"discovery":{"zen":{"minimum_master_nodes":"2"}}}}"#;
    assert_eq!(minimum(set), Ok(3));
    let unset = r#"{"defaults":{"discovery":{"zen":{"minimum_master_nodes":"-1"}}}}"#;
    assert_eq!(minimum(unset), Ok(1));
    for strange in ["{}", r#"{"defaults":{"discovery":{"zen":{"minimum_master_nodes":"two"}}}}"#] {
        assert!(matches!(minimum(strange), Err(EngineError::Protocol(_))));
    }
}

/// Which a later version answers while an Elasticsearch 6 leads.
fn without_configurations() -> serde_json::Value {
    let mut state: serde_json::Value =
        serde_json::from_slice(&recorded(ELASTICSEARCH_7, "state").body).unwrap();
    for of in ["last_committed_config", "last_accepted_config"] {
        state["metadata"]["cluster_coordination"][of] = serde_json::json!([]);
    }
    state
}

#[test] // proves RESTART-163
fn an_elasticsearch_6_that_leads_is_known_by_the_answer_of_a_later_node() {
    let mut state = without_configurations();
    let parsed = |state: &serde_json::Value| {
        topology::parse(&made_up(200, &state.to_string()), None).unwrap()
    };
    let mut topology = parsed(&state);
    assert!(topology.is_led_without_configurations());
    topology.voting = Voting::MinimumMasterNodes(1);
    topology
        .add_details(crate::nodes::parse_details(&recorded(ELASTICSEARCH_7, "details")).unwrap());
    topology.raise_minimum();
    assert_eq!(topology.voting, Voting::MinimumMasterNodes(2), "a majority of three");
    let mut alike = topology_of(ELASTICSEARCH_6, "state");
    alike.voting = Voting::MinimumMasterNodes(1);
    alike.raise_minimum();
    assert_eq!(alike.voting, Voting::MinimumMasterNodes(1), "what every node has");

    state["master_node"] = serde_json::Value::Null;
    assert!(!parsed(&state).is_led_without_configurations(), "it has not formed yet");
}

#[test]
fn voting_configurations_count_though_an_elasticsearch_6_was_there_before() {
    let topology = topology::parse(&recorded(ELASTICSEARCH_7, "state"), Some(2)).unwrap();
    assert!(matches!(topology.voting, Voting::Configurations { .. }), "{:?}", topology.voting);
}

#[test]
fn a_state_without_votes_is_no_state() {
    let state = topology::parse(&recorded(ELASTICSEARCH_6, "state"), None);
    let Err(EngineError::Protocol(message)) = state else { panic!("{state:?}") };
    assert!(message.contains("no voting configuration"), "{message}");
}
