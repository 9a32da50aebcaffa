//! A cluster of three nodes: complete, without one node, without a master, and complete again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use stayput_engine::{
    Access, Allocation, Color, Distribution, Endpoint, Engine, EngineClient, EngineError, Flush,
    Health, Members, Node, RecordKind, RecordStatus, Shard, ShardState, Topology, Voting,
    unreplicated,
};

use super::by_hand::undone_by_hand;
use super::{BOUND, client, wait};
use crate::support::cluster::{Cluster, Flavor, PodIdentity, Seat};
use crate::support::skip;
use crate::support::wait::eventually;

const NAMES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];
pub(super) const MARK: &str = r#"{"restart":"r-1","before":{"persistent":null,"transient":"all"}}"#;

fn story(flavor: Flavor, name: &str) {
    let mut cluster =
        match Cluster::prepare(flavor, "search", Seat::all_rounders(PodIdentity::three()), None) {
            Ok(cluster) => cluster,
            Err(why) => return skip(name, &why),
        };
    cluster.start();
    fill(&cluster);
    let endpoints: Vec<(String, u16)> =
        cluster.members.iter().map(|m| (m.address.to_string(), cluster.ports.http)).collect();
    let client = client(&endpoints, &Access::Plain);

    let engine = wait(client.identify()).expect("an engine");
    let version = match flavor {
        Flavor::OpenSearch | Flavor::ShippedOpenSearch => {
            (Distribution::OpenSearch, "2.19.3", false)
        }
        Flavor::Elasticsearch | Flavor::ElasticsearchWithCertificates => {
            (Distribution::Elasticsearch, "8.19.0", false)
        }
        Flavor::OpenSearch3 => (Distribution::OpenSearch, "3.2.0", false),
        Flavor::Elasticsearch9 => (Distribution::Elasticsearch, "9.1.0", false),
        Flavor::ElasticsearchWithRecords => (Distribution::Elasticsearch, "8.19.0", true),
    };
    let seen = (engine.distribution, engine.version.to_string(), engine.has_node_shutdown);
    assert_eq!(seen, (version.0, version.1.to_owned(), version.2));
    assert_eq!(engine.cluster_name, format!("test-{}", cluster.ports.http));
    assert_eq!(engine.node_name, "logs-0");
    assert!(engine.cluster_uuid.as_deref().is_some_and(|uuid| uuid.len() == 22), "{engine:?}");

    let health = in_time(|| wait(client.health()));
    assert_eq!(health.color, Color::Green, "{health:?}");
    let once_green = in_time(|| wait(client.health_once_green()));
    assert_eq!(once_green.color, Color::Green, "{once_green:?}");
    assert_eq!(health.data_nodes, 3);
    assert_eq!((health.initializing, health.relocating), (0, 0));
    assert_eq!((health.unassigned, health.delayed), (0, 0));

    let members = looks_whole(&cluster, &client, &engine);
    allocation(&client, &engine);
    match wait(client.flush(&engine, BOUND)) {
        Flush::Done { synced, total, successful, failed } => {
            assert_eq!((synced, total, successful, failed), (false, 5, 5, 0));
        }
        other => panic!("{other:?}"),
    }
    if engine.has_node_shutdown {
        records(&client, &members);
    }
    exclusions(&client, &engine, &members);
    undone_by_hand(&cluster, &client, &engine, &members);
    without_one(&cluster, &client, &engine, &members);
    without_a_master(&cluster, &endpoints, &engine);
}

/// Two shards with a replica, one without.
fn fill(cluster: &Cluster) {
    let rest = cluster.members[0].rest;
    for (index, shards, replicas) in [("docs", 2, 1), ("single", 1, 0)] {
        let settings = json!({ "settings": {
            "number_of_shards": shards, "number_of_replicas": replicas,
            // Otherwise the copies of a stopped node would be allocated elsewhere.
            "index.unassigned.node_left.delayed_timeout": "1h",
        } });
        let target = format!("/{index}?wait_for_active_shards=all");
        rest.send("PUT", &target, Some(&settings)).expect("an answer").expect(200);
    }
    assert!((0..10).all(|id| rest.index("docs", id)));
    cluster.until_formed();
}

fn looks_whole(cluster: &Cluster, client: &EngineClient, engine: &Engine) -> Members {
    let topology = wait(client.topology(engine, None)).expect("a topology");
    let Topology {
        cluster_uuid,
        version,
        elected_master,
        voting,
        nodes,
        shards,
        immovable,
        recovered,
        ..
    } = topology;
    assert_eq!(cluster_uuid, engine.cluster_uuid);
    assert!(version > 0 && recovered && immovable.is_empty());
    let ids: BTreeSet<String> = nodes.iter().map(|node| node.id.clone()).collect();
    assert!(ids.contains(elected_master.as_ref().expect("a master")));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
    for member in &cluster.members {
        let mut named = nodes.iter().filter(|node| node.name == member.pod.name);
        let (Some(node), None) = (named.next(), named.next()) else { panic!("{nodes:#?}") };
        assert_eq!(node.attributes["zone"], member.zone);
        assert_eq!(node.attributes["stayput"], "first");
        let transport = format!("{}:{}", member.address, cluster.ports.transport);
        assert_eq!(node.transport_address, transport);
        assert_eq!(node.version, Some(engine.version));
        assert!(node.roles.as_ref().is_some_and(|roles| roles.contains("data")), "{node:?}");
        let started = u128::from(node.jvm_start_ms.expect("a time"));
        assert!(node.heap_max.is_some_and(|heap| heap > 64 << 20), "{node:?}");
        assert!(started < now && started + 3_600_000 > now, "{started} of {now}");
    }
    let Voting::Configurations { committed, accepted, excluded: exclusions } = voting else {
        panic!("{voting:?}");
    };
    assert_eq!((&committed, &accepted, exclusions.len()), (&ids, &ids, 0));

    let alone = unreplicated(&shards);
    assert_eq!(alone.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["single"]);
    assert!(shards.iter().all(|shard| shard.state == ShardState::Started), "{shards:#?}");
    assert!(shards.iter().all(|shard| shard.relocating_to.is_none()));
    let copies: Vec<(&str, u32, bool)> =
        shards.iter().map(|shard| (&*shard.index, shard.number, shard.primary)).collect();
    let docs = [(0, false), (0, true), (1, false), (1, true)];
    let mut expected: Vec<_> = docs.map(|(number, primary)| ("docs", number, primary)).into();
    expected.push(("single", 0, true));
    assert_eq!(copies, expected);
    let places = |shard: &Shard| shard.node_name.clone().expect("a node");
    assert!(shards.iter().all(|shard| NAMES.contains(&&*places(shard))));
    assert!(shards[..4].chunks(2).all(|pair| places(&pair[0]) != places(&pair[1])));

    let members = wait(client.members()).expect("members");
    assert_eq!((&members.cluster_uuid, &members.elected_master), (&cluster_uuid, &elected_master));
    let listed: Vec<_> = nodes
        .iter()
        .map(|node| (node.id.clone(), node.name.clone(), node.ephemeral_id.clone()))
        .collect();
    let expected: Vec<_> = members
        .nodes
        .iter()
        .map(|node| (node.id.clone(), node.name.clone(), node.ephemeral_id.clone()))
        .collect();
    assert_eq!(listed, expected);
    members
}

fn allocation(client: &EngineClient, engine: &Engine) {
    let read = || wait(client.allocation(engine)).expect("settings");
    let unset = Allocation::default();
    assert_eq!(read(), unset);
    wait(client.tighten(&unset, "primaries", MARK)).expect("tightened");
    let persistent = Some("primaries".to_owned());
    let marked = Allocation { persistent, marker: Some(MARK.into()), ..Allocation::default() };
    assert_eq!(read(), marked);
    wait(client.restore(&unset)).expect("restored");
    assert_eq!(read(), unset);

    // A transient value overrides the persistent one, so it is restricted as well.
    let before = Allocation { transient: Some("all".into()), ..Allocation::default() };
    wait(client.tighten(&before, "none", MARK)).expect("tightened");
    let none = Some("none".to_owned());
    let marked = Allocation {
        persistent: none.clone(),
        transient: none,
        marker: Some(MARK.into()),
        ..Allocation::default()
    };
    assert_eq!(read(), marked);
    wait(client.restore(&before)).expect("restored");
    assert_eq!(read(), before);
    match wait(client.tighten(&unset, "some", MARK)) {
        Err(EngineError::Refused { status: 400, message, .. }) => {
            assert!(message.contains("SOME"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(read(), before);
}

fn records(client: &EngineClient, members: &Members) {
    let read = || wait(client.shutdown_records()).expect("records");
    let node = &members.nodes[1].id;
    assert_eq!(read(), []);
    let delay = Duration::from_secs(20 * 60);
    wait(client.put_restart_record(node, "stayput r-1", delay)).expect("a record");
    let records = read();
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&record.node_id, record.reason.as_str()), (node, "stayput r-1"));
    assert_eq!((record.kind, record.status), (RecordKind::Restart, RecordStatus::Complete));
    let migration = record.shard_migration.as_ref().map(|migration| migration.status);
    assert_eq!(migration, Some(RecordStatus::Complete));
    wait(client.delete_record(node)).expect("deleted");
    assert_eq!(read(), []);
    wait(client.delete_record(node)).expect("gone as well");
}

/// The first endpoint is not reachable, so the others are used. Then the node is back, as another
/// process. The elected master is excluded from voting, another one is elected, and all vote again.
fn exclusions(client: &EngineClient, engine: &Engine, members: &Members) {
    let all: BTreeSet<&str> = members.nodes.iter().map(|node| node.id.as_str()).collect();
    let elected = wait(client.members()).expect("members").elected_master.expect("a master");
    let name = &members.nodes.iter().find(|node| node.id == elected).expect("listed").name;
    // Sending it twice has the effect of once. The master that answers may end before it has
    // answered.
    let _ = wait(client.exclude_voter(engine, name));
    let votes = || match wait(client.topology(engine, None)) {
        Ok(Topology { elected_master, voting, .. }) => match voting {
            Voting::Configurations { committed, accepted, excluded: exclusions } => {
                Some((elected_master?, committed, accepted, exclusions))
            }
            Voting::MinimumMasterNodes(_) => None,
        },
        Err(_) => None,
    };
    let moved = eventually("the vote is handed over", || {
        votes().filter(|(master, committed, accepted, _)| {
            !committed.contains(&elected) && !accepted.contains(&elected) && *master != elected
        })
    });
    println!("without {name} of {all:?}: {moved:?}");
    assert_eq!(moved.3, BTreeSet::from([name.clone()]));
    assert_eq!(wait(client.exclude_voter(engine, name)), Ok(()));
    assert_eq!(wait(client.clear_voting_exclusions(engine)), Ok(()));
    assert_eq!(wait(client.clear_voting_exclusions(engine)), Ok(()), "none is left to clear");
    eventually("all vote again", || {
        votes().filter(|(_, committed, accepted, exclusions)| {
            let voters: BTreeSet<&str> = committed.iter().map(String::as_str).collect();
            voters == all && committed == accepted && exclusions.is_empty()
        })
    });
}

fn without_one(cluster: &Cluster, client: &EngineClient, engine: &Engine, before: &Members) {
    let api = &cluster.member("logs-0").manager().api;
    api.stop();
    let members = eventually("logs-0 is gone from the list", || {
        let members = wait(client.members()).ok()?;
        let names: Vec<&str> = members.nodes.iter().map(|node| node.name.as_str()).collect();
        (!names.contains(&"logs-0") && members.elected_master.is_some()).then_some(members)
    });
    assert_eq!((members.nodes.len(), &members.cluster_uuid), (2, &before.cluster_uuid));
    let topology = wait(client.topology(engine, None)).expect("a topology");
    assert!(topology.shards.iter().all(|shard| shard.node_name.as_deref() != Some("logs-0")));
    let health = in_time(|| wait(client.health()));
    assert_eq!(health.data_nodes, 2);
    assert!(health.color != Color::Green && health.unassigned > 0, "{health:?}");
    let not_more = wait(client.health_once_nodes(3)).expect("health");
    assert_eq!((not_more.data_nodes, not_more.timed_out), (2, true), "{not_more:?}");
    in_time(|| wait(client.health_once_nodes(2)));
    let listed = wait(client.listed(engine, None)).expect("nodes");
    let names =
        |nodes: &[Node]| nodes.iter().map(|node| node.name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(names(&listed.nodes), names(&topology.nodes));
    let not_green = wait(client.health_once_green()).expect("health");
    assert!(not_green.color != Color::Green && not_green.timed_out, "{not_green:?}");
    assert!(matches!(wait(client.identify()), Ok(found) if found.node_name != "logs-0"));

    api.start(&json!({}));
    cluster.until_formed();
    let after = wait(client.members()).expect("members");
    let find = |members: &Members| {
        members.nodes.iter().find(|node| node.name == "logs-0").cloned().expect("logs-0")
    };
    let (old, new) = (find(before), find(&after));
    assert_eq!(old.id, new.id);
    assert_ne!(old.ephemeral_id, new.ephemeral_id);
}

/// The health that the engine has found within the second that it is given; its master may be busy at first.
#[track_caller]
fn in_time(ask: impl Fn() -> Result<Health, EngineError>) -> Health {
    eventually("the engine answers in time", || ask().ok().filter(|health| !health.timed_out))
}

/// Two of three are stopped: requests that need a master are refused in time, others are answered.
fn without_a_master(cluster: &Cluster, endpoints: &[(String, u16)], engine: &Engine) {
    let endpoints =
        endpoints.iter().map(|(host, port)| Endpoint { host: host.clone(), port: *port });
    let endpoints: Vec<Endpoint> = endpoints.collect();
    let bound = Duration::from_secs(10);
    let client = EngineClient::new(&endpoints, &Access::Plain, bound).expect("a client");
    for name in ["logs-0", "logs-1"] {
        cluster.member(name).manager().api.stop();
    }
    // The engine waits for three quarters of the bound; on a busy machine its answer may be late.
    let refused = |ask: &dyn Fn() -> Result<(), EngineError>| {
        let answer = eventually("it is refused", || match ask() {
            Err(EngineError::Unanswered(_)) => None,
            answer => Some(answer),
        });
        match answer {
            Err(EngineError::Refused { status: 503, message, .. }) => {
                assert!(message.contains("elected master"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    };
    let began = Instant::now();
    eventually("the last node misses its master", || wait(client.members()).err());
    refused(&|| wait(client.health()).map(drop));
    refused(&|| wait(client.topology(engine, None)).map(drop));
    refused(&|| wait(client.allocation(engine)).map(drop));
    refused(&|| wait(client.tighten(&Allocation::default(), "primaries", MARK)));
    let found = wait(client.identify()).expect("identity needs no master");
    let expected = Engine { node_name: "logs-2".into(), ..engine.clone() };
    assert_eq!(found, expected);
    let flush = client.flush(engine, Duration::from_millis(500));
    assert!(matches!(wait(flush), Flush::NotKnown(_)));
    assert!(began.elapsed() < bound * 2 * 8, "{:?}", began.elapsed());

    let last = cluster.member("logs-2");
    last.manager().api.stop();
    match wait(client.health()) {
        Err(EngineError::NotReachable(why)) => {
            assert!(NAMES.len() == 3 && why.matches("cannot connect to").count() == 3, "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test] // proves OPERATE-7
fn opensearch() {
    story(Flavor::OpenSearch, "engine_client::three::opensearch");
}

#[test] // proves OPERATE-7
fn elasticsearch_with_records() {
    story(Flavor::ElasticsearchWithRecords, "engine_client::three::elasticsearch_with_records");
}
