//! Distribution and version, read from recorded answers.

use super::super::{Distribution, Engine, Version, identify, shutdown};
use super::cluster::topology_of;
use super::*;

#[track_caller]
fn identified(name: &str) -> Engine {
    let local = identify::parse_local(&answer_to(&identify::local_call(), name, "local")).unwrap();
    let root = recorded(name, "root");
    if root.is_unknown_route() {
        let state = identify::parse_state(&recorded(name, "version")).unwrap();
        return local.without_root(state);
    }
    local.with_root(identify::parse_root(&root).unwrap())
}

#[test] // proves RESTART-156
fn every_engine_is_known_for_what_it_is() {
    use Distribution::{Elasticsearch, OpenSearch};
    for (name, distribution, version, cluster, uuid) in [
        (OPENSEARCH_2, OpenSearch, Version::new(2, 19, 3), "os2", "HHHrgapGQyCXt6wo3163vQ"),
        (OPENSEARCH_3, OpenSearch, Version::new(3, 2, 0), "os3", "I3yCRpiYSdyBiv0p0zy6nA"),
        (ELASTICSEARCH_6, Elasticsearch, Version::new(6, 8, 23), "es6", "0gpiak7aQXCfCPN8M76dyA"),
        (ELASTICSEARCH_7, Elasticsearch, Version::new(7, 17, 29), "es7", "y_Bz2V_ERW2MIec7N_Fcgg"),
        (ELASTICSEARCH_8, Elasticsearch, Version::new(8, 19, 0), "es8", "l2gc3dlWTRqH6agwp4GJSg"),
        (ELASTICSEARCH_9, Elasticsearch, Version::new(9, 1, 0), "es9", "vNl-4ATETg2LTvZBe4aGvg"),
    ] {
        let expected = Engine {
            distribution,
            version,
            cluster_name: cluster.into(),
            cluster_uuid: Some(uuid.into()),
            node_name: "logs-0".into(),
            has_node_shutdown: false,
        };
        assert_eq!(identified(name), expected);
    }
}

#[test]
fn the_test_distribution_of_elasticsearch_8_has_no_handler_at_the_root() {
    assert!(recorded(ELASTICSEARCH_8, "root").is_unknown_route());
    assert!(!recorded(ELASTICSEARCH_7, "root").is_unknown_route());
}

#[test]
fn without_a_root_the_build_flavor_tells() {
    let without = |name| {
        let local = identify::parse_local(&recorded(name, "local")).unwrap();
        local.without_root(identify::parse_state(&recorded(name, "version")).unwrap())
    };
    for name in ALL {
        assert_eq!(without(name), identified(name));
    }
}

#[test]
fn elasticsearch_6_is_known_without_a_master_too() {
    let root = recorded(ELASTICSEARCH_6, "root_no_master");
    assert_eq!(root.status, 503);
    let local = identify::parse_local(&recorded(ELASTICSEARCH_6, "local")).unwrap();
    let engine = local.with_root(identify::parse_root(&root).unwrap());
    assert_eq!(engine, identified(ELASTICSEARCH_6));
}

#[test]
fn a_cluster_that_was_never_formed_has_no_id() {
    let local = identify::parse_local(&recorded(OPENSEARCH_2, "local")).unwrap();
    let body =
        r#"{"cluster_uuid":"_na_","version":{"distribution":"opensearch","number":"7.10.2"}}"#;
    let engine = local.with_root(identify::parse_root(&made_up(200, body)).unwrap());
    assert_eq!(engine.cluster_uuid, None);
    // The compatibility version for old clients is ignored.
    assert_eq!(engine.version, Version::new(2, 19, 3));
}

#[test]
fn too_old_an_engine_is_refused_with_its_name() {
    let body = r#"{"cluster_name":"c","nodes":{"x":{"name":"logs-0","version":"6.7.2","build_flavor":"oss"}}}"#;
    let local = identify::parse_local(&made_up(200, body)).unwrap();
    let state = identify::parse_state(&recorded(ELASTICSEARCH_6, "version")).unwrap();
    let error = local.without_root(state).supported().unwrap_err().to_string();
    assert!(error.contains("node logs-0 is Elasticsearch 6.7.2"), "{error}");
    assert!(identified(ELASTICSEARCH_6).supported().is_ok());
}

#[test]
fn records_are_there_where_they_can_be_written() {
    let known = |name| shutdown::is_known(&answer_to(&shutdown::probe(), name, "probe"));
    assert_eq!(known(ELASTICSEARCH_8), Ok(true));
    // The test distribution has no such route, and answers as OpenSearch would.
    assert_eq!(known(ELASTICSEARCH_7), Ok(false));
    assert_eq!(known(ELASTICSEARCH_9), Ok(false));
    assert_eq!(shutdown::is_known(&recorded(ELASTICSEARCH_8, "unknown_route")), Ok(false));
    assert!(shutdown::is_known(&recorded(ELASTICSEARCH_8, "unauthorized_none")).is_err());
}

#[test] // proves RESTART-163
fn the_elected_master_decides_whether_there_are_records_and_what_is_known_is_renewed() {
    let of = |versions: [&str; 3], elected: usize| {
        let mut topology = topology_of(ELASTICSEARCH_8, "state");
        for (node, version) in topology.nodes.iter_mut().zip(versions) {
            node.version = Some(version.parse().unwrap());
        }
        topology.elected_master = Some(topology.nodes[elected].id.clone());
        topology
    };
    let engine = Engine {
        version: "7.17.29".parse().unwrap(),
        has_node_shutdown: true,
        ..identified(ELASTICSEARCH_7)
    };
    let before = of(["7.10.2", "7.10.2", "7.17.29"], 0);
    assert!(!engine.lists_records(&before), "the master does not know the request");
    assert!(!engine.is_outdated(None, &before) && !engine.is_outdated(Some(&before), &before));
    let after = of(["7.10.2", "7.10.2", "7.17.29"], 2);
    assert!(engine.lists_records(&after));
    assert!(engine.is_outdated(Some(&before), &after), "the master has another version");
    let later = of(["8.19.0"; 3], 1);
    assert!(engine.is_outdated(None, &later), "no node has this version any more");
    let mut silent = after.clone();
    silent.nodes[2].version = None;
    assert!(engine.lists_records(&silent), "then the answer decides");
    let without = Engine { has_node_shutdown: false, ..engine };
    assert!(!without.lists_records(&after));
}

#[test]
fn versions_decide_what_is_asked() {
    let engine = |distribution, version: &str| Engine {
        distribution,
        version: version.parse().unwrap(),
        cluster_name: "c".into(),
        cluster_uuid: None,
        node_name: "n".into(),
        has_node_shutdown: false,
    };
    let elastic = |version| engine(Distribution::Elasticsearch, version);
    let open = |version| engine(Distribution::OpenSearch, version);
    for (engine, shutdown, synced, minimum) in [
        (elastic("6.8.23"), false, true, true),
        (elastic("7.0.0"), false, true, false),
        (elastic("7.5.2"), false, true, false),
        (elastic("7.6.0"), false, false, false),
        (elastic("7.15.1"), false, false, false),
        (elastic("7.15.2"), true, false, false),
        (elastic("9.1.0"), true, false, false),
        (open("1.3.20"), false, false, false),
        (open("3.2.0"), false, false, false),
    ] {
        let asks = (
            engine.may_have_node_shutdown(),
            engine.has_synced_flush(),
            engine.has_minimum_master_nodes(),
        );
        assert_eq!(asks, (shutdown, synced, minimum), "{engine:?}");
    }
}
