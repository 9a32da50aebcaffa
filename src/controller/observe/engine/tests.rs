//! Stale, partial or odd answers of an engine, and the snapshot made from them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::observe::snapshot::bare;
use crate::pods::{Pods, Reading};
use serde_json::json;
use stayput_engine::{Access, ShardState};
use stayput_restart::Color;

/// An engine with answers that a test makes up; `None` is never answered.
pub(crate) async fn served(
    answer: impl Fn(&str) -> Option<serde_json::Value> + Send + Sync + 'static,
) -> Endpoint {
    let port = stayput_standin::harness::served::served(answer).await;
    Endpoint { host: "127.0.0.1".into(), port }
}

/// A node with these roles, or one that has not reported its details.
fn node(name: &str, ephemeral_id: &str, roles: Option<&[&str]>) -> stayput_engine::Node {
    stayput_engine::Node {
        id: format!("id-{name}"),
        name: name.into(),
        ephemeral_id: ephemeral_id.into(),
        transport_address: "10.0.0.7:9300".into(),
        attributes: [("zone".to_owned(), "z1".to_owned())].into(),
        roles: roles.map(|roles| roles.iter().map(|role| (*role).to_owned()).collect()),
        version: roles.map(|_| "2.19.3".parse().unwrap()),
        jvm_start_ms: None,
        heap_max: None,
        data_paths: Vec::new(),
        snapshot: None,
    }
}

/// It hangs, or has joined a moment ago.
#[test]
fn a_node_that_has_not_reported_is_there_and_may_have_any_role() {
    let silent = convert::node(&node("logs-1", "e1", None), "zone");
    assert!(silent.roles_unknown && silent.is_master_eligible() && silent.holds_data());
    let known = convert::node(&node("logs-1", "e1", Some(&["data", "quantum"])), "zone");
    assert_eq!(known.roles, ["data", "quantum"].map(str::to_owned).into());
    assert!(!known.roles_unknown && !known.is_master_eligible());
    assert_eq!((known.zone.as_deref(), known.version.as_str()), (Some("z1"), "2.19.3"));
}

/// Its data is where it was until the move is over.
#[test]
fn a_relocating_copy_is_a_started_one_at_its_source() {
    let shard = |state, node: Option<&str>| stayput_engine::Shard {
        index: "docs".into(),
        number: 3,
        primary: true,
        search_only: true,
        state,
        node_name: node.map(Into::into),
        relocating_to: Some("logs-1".into()),
    };
    let copies = |state| convert::shards(&[shard(state, Some("logs-0"))]).to_vec();
    let moved = copies(ShardState::Relocating);
    assert_eq!(moved.len(), 1);
    let moved = &moved[0];
    assert_eq!((moved.started, moved.node.as_deref(), moved.shard), (true, Some("logs-0"), 3));
    assert!(moved.search_only);
    for state in [ShardState::Initializing, ShardState::Unassigned, ShardState::Unknown] {
        assert!(!copies(state)[0].started, "{state:?}");
    }
}

#[test]
fn a_health_that_timed_out_says_so_and_no_count_is_beyond_a_number() {
    let answer = stayput_engine::Health {
        cluster_name: "logs".into(),
        status: stayput_engine::Color::Unknown,
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
    let health = convert::health(&answer);
    assert_eq!((health.color, health.timed_out), (Color::Unknown, true));
    assert_eq!((health.data_nodes, health.unassigned), (u32::MAX, u32::MAX));
    assert_eq!((health.initializing, health.relocating), (1, 2));
    assert_eq!((health.delayed, health.in_flight_fetch), (3, 4));
}

fn reach(version: &str) -> Reach {
    Reach { access: Access::Plain, version: version.to_owned() }
}

/// Connections are kept in the client, so none is used with other credentials than its own.
#[test] // proves RESTART-18
fn other_credentials_and_other_endpoints_are_another_client() {
    let mut view = EngineView::default();
    let at = |host: &str| vec![Endpoint { host: host.to_owned(), port: 9200 }];
    let mut connect =
        |version: &str, endpoints| view.connect(&reach(version), endpoints).expect("a client");
    let first = connect("1", at("10.0.0.1"));
    assert!(Arc::ptr_eq(&first, &connect("1", at("10.0.0.1"))));
    let changed = connect("2", at("10.0.0.1"));
    assert!(!Arc::ptr_eq(&first, &changed));
    assert_eq!(Arc::strong_count(&first), 1, "the view does not hold the old one");
    assert!(!Arc::ptr_eq(&changed, &connect("2", at("10.0.0.2"))));
}

/// The order changes with each node that becomes ready or gets a slot.
#[test] // proves RESTART-18
fn the_same_endpoints_in_another_order_are_the_same_client() {
    let mut view = EngineView::default();
    let mut connect = |hosts: &[&str]| {
        let at = |host: &&str| Endpoint { host: (*host).to_owned(), port: 9200 };
        let endpoints = hosts.iter().map(at).collect();
        view.connect(&reach("1"), endpoints).expect("a client")
    };
    let first = connect(&["10.0.0.1", "10.0.0.2"]);
    assert!(Arc::ptr_eq(&first, &connect(&["10.0.0.2", "10.0.0.1"])));
    assert!(Arc::ptr_eq(&first, &connect(&["10.0.0.1", "10.0.0.2"])));
    for others in [&["10.0.0.1", "10.0.0.3"][..], &["10.0.0.3"], &["10.0.0.3", "10.0.0.1"]] {
        let before = connect(&["10.0.0.1", "10.0.0.2"]);
        assert!(!Arc::ptr_eq(&before, &connect(others)), "{others:?}");
    }
}

#[tokio::test(start_paused = true)] // proves RESTART-12
async fn what_was_read_more_than_two_seconds_ago_is_too_old_for_a_stop() {
    let engine = EngineView { read_at: Some(Instant::now()), ..EngineView::default() };
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert!(!engine.is_old());
    tokio::time::advance(std::time::Duration::from_millis(1)).await;
    assert!(engine.is_old() && EngineView::default().is_old());
}

/// Nothing is stopped by what was not read, and nothing of it stays unknown.
#[tokio::test] // proves RESTART-39
async fn the_look_after_the_one_that_saw_a_join_reads_everything_of_the_same_state() {
    let ledger = json!({
        "restart": {
            "request": { "id": "r1", "strategy": "rolling" },
            "started": "2026-11-21T03:09:20Z",
            "members": [{
                "podUid": "u", "pod": "b", "node": "b", "step": "restarting",
                "since": "2026-11-21T03:09:20Z", "ephemeralId": "old",
            }],
        },
        "debts": { "allocation": { "restart": "r1", "before": {}, "holders": ["u"] } },
    });
    let ledger: Ledger = serde_json::from_value(ledger).unwrap();
    let (endpoint, _) = one_moment::tests::engine("green", true).await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    let look = async |view: &mut EngineView| {
        let at = vec![endpoint.clone()];
        view.observe(Ok(reach("1")), at, "zone", Some(&ledger), &metrics).await.expect("an engine")
    };
    look(&mut view).await;
    let before = view.topology.as_mut().expect("it was read");
    before.nodes.retain(|node| node.name != "b");
    let first = look(&mut view).await;
    assert!(first.allocation.is_ok_and(|allocation| allocation.marker.is_some()));
    assert!(first.health.is_err() && first.shards.is_err() && first.searchable_snapshots.is_err());
    assert_eq!(
        first.nodes.iter().map(|node| node.roles_unknown).collect::<Vec<_>>(),
        [false, true]
    );
    let second = look(&mut view).await;
    assert!(second.health.is_ok());
    assert_eq!(second.shards.expect("they are read").to_vec().len(), 2);
    assert!(second.nodes.iter().all(|node| !node.roles_unknown));
}

/// Until it has read its disks, a master hides settings and records. They are asked for beside its state.
#[tokio::test] // proves RESTART-149
async fn settings_that_came_before_a_new_master_had_read_its_disks_are_not_taken() {
    let (reads, settings) = (AtomicU64::new(0), AtomicU64::new(0));
    let endpoint = served(move |target| {
        let is_early = target.starts_with("/_cluster/settings")
            && settings.fetch_add(1, Ordering::SeqCst) == 0;
        Some(if is_early {
            json!({ "persistent": {}, "transient": {} })
        } else {
            one_moment::tests::answer(target, "green", true, &reads)
        })
    })
    .await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    let engine = view.observe(Ok(reach("1")), vec![endpoint], "zone", None, &metrics).await;
    let allocation = engine.expect("an engine").allocation.expect("its settings");
    assert!(allocation.marker.is_some(), "what is owed is not taken for paid");
}

/// Elasticsearch waits 30 s for a master before it answers for its records, and takes no other time.
#[tokio::test] // proves RESTART-14
async fn a_cluster_without_a_master_is_known_to_be_one_before_records_are_answered() {
    let endpoint = served(|target| match target {
        "/_nodes/shutdown" => None,
        target if target.starts_with("/_cluster/state/version,") => Some(json!({
            "cluster_uuid": "uuid", "version": 7, "master_node": null, "nodes": {},
        })),
        target if target.starts_with("/_cluster") => Some(json!({})),
        _ => Some(json!({
            "name": "a", "cluster_name": "logs", "cluster_uuid": "uuid",
            "version": { "number": "8.19.0" }, "nodes": {},
        })),
    })
    .await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    let engine = view.observe(Ok(reach("1")), vec![endpoint], "zone", None, &metrics);
    let began = Instant::now();
    assert!(engine.await.is_err());
    assert!(began.elapsed() < ENGINE_ANSWER_TIMEOUT, "the records were waited for");
}

/// While the last node's shards come back, the master has tasks all the time.
#[tokio::test] // proves RESTART-88
async fn the_end_of_a_restart_waits_for_no_task_of_the_master() {
    let ledger = json!({ "restart": {
        "request": { "id": "r1", "strategy": "rolling" },
        "started": "2026-11-21T03:09:20Z",
        "members": [{
            "podUid": "u", "pod": "b", "node": "b", "step": "restarting",
            "since": "2026-11-21T03:09:20Z", "ephemeralId": "old",
        }],
    } });
    let ledger: Ledger = serde_json::from_value(ledger).unwrap();
    let (reads, is_busy) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let busy = Arc::clone(&is_busy);
    let endpoint = served(move |target| {
        let waits = busy.load(Ordering::SeqCst) && target.contains("wait_for_events");
        (!waits).then(|| one_moment::tests::answer(target, "yellow", true, &reads))
    })
    .await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    for busy in [false, true] {
        is_busy.store(busy, Ordering::SeqCst);
        let at = vec![endpoint.clone()];
        let engine = view.observe(Ok(reach("1")), at, "zone", Some(&ledger), &metrics).await;
        let health = engine.expect("an engine").health.expect("a health");
        assert_eq!(health.color, Color::Yellow);
    }
}

#[tokio::test] // proves RESTART-40
async fn a_health_that_was_told_counts_once_and_only_if_it_is_new() {
    let (endpoint, _) = one_moment::tests::engine("green", true).await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    // That which is asked for is green.
    let mut colors = vec![];
    for age in [None, Some(Duration::ZERO), None, Some(told::MAX_AGE)] {
        view.tell(age.map(|_| Told::Green(one_moment::tests::health_of("yellow"))));
        if let (Some(age), Some(told)) = (age, &mut view.told) {
            told.at -= age;
        }
        let at = vec![endpoint.clone()];
        let engine = view.observe(Ok(reach("1")), at, "zone", None, &metrics).await;
        colors.push(engine.expect("an engine").health.expect("a health").color);
        assert!(view.told.is_none(), "it counts once");
    }
    assert_eq!(colors, [Color::Green, Color::Yellow, Color::Green, Color::Green]);
}

/// The nodes of one set may be cut off from the others.
#[test] // proves RESTART-52
fn nodes_of_each_set_are_among_those_that_are_asked() {
    let facts = |set: &str, number: u32| {
        let name = format!("{set}-{number}");
        let pod = json!({
            "metadata": {
                "name": name, "namespace": "search", "uid": name, "resourceVersion": "1",
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": set, "controller": true,
                }],
            },
            "status": {"podIP": name, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        Arc::new(PodFacts::of(&pod, &Reading::default()).unwrap())
    };
    let pods: Vec<_> =
        (0..9).map(|at| facts("a", at)).chain((0..2).map(|at| facts("b", at))).collect();
    let cluster =
        json!({"metadata": {"name": "logs", "namespace": "search"}, "spec": {"engine": {}}});
    let known = bare(&serde_json::from_value(cluster).unwrap(), &Pods::default(), String::new());
    let must_read = BTreeSet::new();
    let found = endpoints(&pods, &Ages::of(&known, &must_read, false, pods.len()), 9200);
    let hosts: Vec<_> = found.iter().map(|endpoint| endpoint.host.as_str()).collect();
    assert_eq!(hosts, ["a-0", "b-0", "a-1", "b-1", "a-2", "a-3", "a-4", "a-5"]);
}
