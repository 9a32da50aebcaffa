//! Stale, partial or odd answers of an engine, and the snapshot made from them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::pods::Reading;
use serde_json::{Value, json};
use stayput_engine::{Access, ShardState};
use stayput_restart::{Color, LeavingShards};

/// An engine with answers that a test makes up; `None` is never answered.
pub(crate) async fn served(
    answer: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
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

fn health_body(color: &str) -> Value {
    json!({
        "cluster_name": "logs", "status": color, "timed_out": false,
        "number_of_nodes": 2, "number_of_data_nodes": 2, "active_primary_shards": 1,
        "active_shards": 2, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": 0, "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
    })
}

/// The answers of an engine whose replica has started at the second read of the copies, or never; the health
/// has the given color all the time.
fn answer(target: &str, color: &str, starts: bool, reads: &AtomicU64) -> Value {
    if target.starts_with("/_cluster/health") {
        return health_body(color);
    }
    if target.starts_with("/_cluster/state/routing_table") {
        let replica = if reads.fetch_add(1, Ordering::SeqCst) > 0 && starts {
            "STARTED"
        } else {
            "INITIALIZING"
        };
        let copy =
            |state, node, primary| json!({ "state": state, "primary": primary, "node": node });
        let copies = json!([copy("STARTED", "a", true), copy(replica, "b", false)]);
        return json!({ "routing_table": { "indices": { "docs": { "shards": { "0": copies } } } } });
    }
    if target.starts_with("/_cluster/state/master_node") {
        return json!({ "cluster_manager_node": "a" });
    }
    if target.starts_with("/_cluster/state/version,") {
        let node = |name| json!({ "name": name, "ephemeral_id": name, "transport_address": "127.0.0.1:9300" });
        let coordination = json!({ "last_committed_config": ["a"], "last_accepted_config": ["a"] });
        return json!({
            "cluster_uuid": "uuid", "version": 7 + reads.load(Ordering::SeqCst),
            "cluster_manager_node": "a", "nodes": { "a": node("a"), "b": node("b") },
            "metadata": { "cluster_coordination": coordination },
        });
    }
    if target.starts_with("/_cluster/settings") {
        let marker = json!({ "cluster": "search/logs", "restart": "r1", "before": {} }).to_string();
        return json!({ "persistent": { "cluster.metadata.stayput": marker }, "transient": {} });
    }
    if target.starts_with("/_nodes/_local") {
        return json!({ "cluster_name": "logs", "nodes": { "a": { "name": "a", "version": "2.19.3" } } });
    }
    if target.starts_with("/_nodes") {
        let node = json!({
            "version": "2.19.3", "roles": ["data"], "jvm": { "start_time_in_millis": 1 },
        });
        return json!({ "nodes": { "a": node, "b": node } });
    }
    json!({
        "name": "a", "cluster_name": "logs", "cluster_uuid": "uuid",
        "version": { "distribution": "opensearch", "number": "2.19.3" },
    })
}

/// Nothing is stopped by what was not read, and nothing of it stays unknown.
#[tokio::test] // proves RESTART-39
async fn the_first_look_after_a_join_waits_for_the_nodes_alone_and_the_next_for_everything() {
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
    let (reads, is_slow) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let slow = Arc::clone(&is_slow);
    let endpoint = served(move |target| {
        let late = ["/_cluster/health", "/_cluster/state/routing_table", "/_nodes/_all"];
        let is_late = late.iter().any(|one| target.starts_with(one));
        (!is_late || !slow.load(Ordering::SeqCst)).then(|| answer(target, "green", true, &reads))
    })
    .await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    let look = async |view: &mut EngineView| {
        let at = vec![endpoint.clone()];
        view.observe(Ok(reach("1")), at, "zone", Some(&ledger), &metrics).await.expect("an engine")
    };
    look(&mut view).await;
    let before = view.topology.as_mut().expect("it was read");
    before.nodes.retain(|node| node.name != "b");
    is_slow.store(true, Ordering::SeqCst);
    let first = look(&mut view).await;
    assert!(first.allocation.is_ok_and(|allocation| allocation.marker.is_some()));
    assert!(first.health.is_err() && first.shards.is_err() && first.searchable_snapshots.is_err());
    assert_eq!(
        first.nodes.iter().map(|node| node.roles_unknown).collect::<Vec<_>>(),
        [false, true]
    );
    is_slow.store(false, Ordering::SeqCst);
    let second = look(&mut view).await;
    assert!(second.health.is_ok());
    assert_eq!(second.shards.expect("they are read").to_vec().len(), 2);
    assert!(second.nodes.iter().all(|node| !node.roles_unknown));
}

/// Reads an engine with this health: which copies have started, and how often they were read.
async fn read_from(color: &'static str, starts: bool) -> (Vec<bool>, u64) {
    let reads = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&reads);
    let endpoint = served(move |target| Some(answer(target, color, starts, &shared))).await;
    let (mut view, metrics) = (EngineView::default(), Metrics::new());
    let engine = view.observe(Ok(reach("1")), vec![endpoint], "zone", None, &metrics).await;
    let copies = engine.expect("an engine").shards.expect("copies").to_vec();
    (copies.iter().map(|copy| copy.started).collect(), reads.load(Ordering::SeqCst))
}

#[tokio::test] // proves RULE-16
async fn copies_older_than_a_green_health_are_read_again() {
    assert_eq!(read_from("green", true).await, (vec![true; 2], 2));
}

/// Copies are read again once, whatever comes; and not at all while the health says the same as they do.
#[tokio::test]
async fn copies_are_read_again_once_and_only_if_the_health_is_green() {
    assert_eq!(read_from("green", false).await, (vec![true, false], 2));
    assert_eq!(read_from("yellow", true).await, (vec![true, false], 1));
}

/// A node that is excluded and empty by then gets no shard any more.
#[tokio::test] // proves DECLARE-32
async fn while_nodes_leave_no_copy_is_older_than_the_exclusion() {
    let (reads, targets) = (AtomicU64::new(0), Arc::new(Mutex::new(Vec::new())));
    let asked = Arc::clone(&targets);
    let endpoint = served(move |target| {
        asked.lock().expect("a lock").push(target.to_owned());
        Some(answer(target, "yellow", true, &reads))
    })
    .await;
    let mut view = EngineView { nodes_leave: true, ..EngineView::default() };
    let metrics = Metrics::new();
    let engine = view.observe(Ok(reach("1")), vec![endpoint], "zone", None, &metrics).await;
    engine.expect("an engine");
    let targets = targets.lock().expect("a lock");
    let last = |path: &str| targets.iter().rposition(|target| target.starts_with(path));
    let settings = last("/_cluster/settings");
    assert!(settings.is_some() && settings < last("/_cluster/state/version,"), "{targets:?}");
    assert!(settings < last("/_cluster/state/routing_table"), "{targets:?}");
}

/// An engine whose primary is on the node `a`. Neither of two endpoints ever says why a shard stays there.
async fn with_a_shard_that_stays(metrics: &Metrics) -> EngineView {
    let mut endpoints = Vec::new();
    for _ in 0..2 {
        let reads = AtomicU64::new(0);
        let endpoint = served(move |target| {
            let explains = target.starts_with("/_cluster/allocation/explain");
            (!explains).then(|| answer(target, "yellow", true, &reads))
        });
        endpoints.push(endpoint.await);
    }
    let mut view = EngineView { nodes_leave: true, ..EngineView::default() };
    let engine = view.observe(Ok(reach("1")), endpoints, "zone", None, metrics).await;
    engine.expect("an engine");
    view
}

fn counted(shards: &BTreeMap<String, LeavingShards>) -> BTreeMap<&str, usize> {
    shards.iter().map(|(node, shards)| (node.as_str(), shards.count)).collect()
}

/// A node without a count waits, and one with a count of zero is removed.
#[tokio::test] // proves DECLARE-32
async fn shards_of_nodes_that_leave_are_counted_whichever_engine_is_the_master() {
    let metrics = Metrics::new();
    let mut view = with_a_shard_that_stays(&metrics).await;
    view.identity = None;
    let leaving = ["a", "b", "not-listed"].map(str::to_owned).into();
    let shards = view.leaving_shards(&leaving, &metrics).await;
    assert_eq!(counted(&shards), [("a", 1), ("b", 1)].into());
}

#[tokio::test] // proves DECLARE-32
async fn an_engine_that_does_not_explain_delays_a_look_by_one_limit() {
    let metrics = Metrics::new();
    let view = with_a_shard_that_stays(&metrics).await;
    tokio::time::pause();
    let began = Instant::now();
    let leaving = ["a", "b"].map(str::to_owned).into();
    let shards = view.leaving_shards(&leaving, &metrics).await;
    assert_eq!(counted(&shards), [("a", 1), ("b", 1)].into());
    let waited = began.elapsed();
    assert!(waited < ENGINE_ANSWER_TIMEOUT + Duration::from_secs(1), "{waited:?}");
}

/// If the details counted, the next look would wait as long as a node that boots.
#[tokio::test]
async fn how_long_a_node_takes_to_report_its_details_is_not_counted() {
    let reads = AtomicU64::new(0);
    let endpoint = served(move |target| {
        (!target.starts_with("/_nodes/_all")).then(|| answer(target, "yellow", true, &reads))
    })
    .await;
    let endpoints = vec![endpoint];
    let client = EngineClient::new(&endpoints, &Access::Plain, Duration::from_secs(1));
    let client = Some(("1".to_owned(), endpoints, Arc::new(client.expect("a client"))));
    let mut view = EngineView { client, ..EngineView::default() };
    // The other answers take a few milliseconds, but on a busy machine now and then as long as the details.
    for _ in 0..10 {
        let began = Instant::now();
        let engine = view.read("zone", None, &Metrics::new()).await;
        if engine.is_ok_and(|engine| engine.nodes.len() == 2)
            && view.reading() < began.elapsed() / 2
        {
            return;
        }
    }
    panic!("the details are counted: {:?}", view.reading());
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
            answer(target, "green", true, &reads)
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
#[tokio::test] // proves RESTART-87
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
        (!waits).then(|| answer(target, "yellow", true, &reads))
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
    let ledger = Ledger::default();
    let must_read = BTreeSet::new();
    let found = endpoints(&pods, &Ages::of(&ledger, &must_read, false, pods.len()), 9200);
    let hosts: Vec<_> = found.iter().map(|endpoint| endpoint.host.as_str()).collect();
    assert_eq!(hosts, ["a-0", "b-0", "a-1", "b-1", "a-2", "a-3", "a-4", "a-5"]);
}
