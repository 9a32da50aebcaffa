//! A cluster of stand-in engines: the suite for real engines, and cases for stand-ins only.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal::{SIGCONT, SIGKILL, SIGSTOP};
use serde_json::{Value, json};

use crate::support::standin_cluster::{Three, ask_at};
use stayput_conformance::engine::{Cluster, STORIES, run_story};

/// Runs each case on its own cluster, as its own test.
macro_rules! stories {
    ($($module:ident: $($story:ident)+;)+) => {
        /// The names of the cases that are tests here.
        const TOLD: &[&str] =
            &[$($(concat!(stringify!($module), "::", stringify!($story))),+),+];

        mod opensearch {
            $($(#[test] fn $story() {
                super::run("", concat!(stringify!($module), "::", stringify!($story)));
            })+)+
        }
        mod elasticsearch {
            $($(#[test] fn $story() {
                let settings = "standin.distribution: elasticsearch";
                super::run(settings, concat!(stringify!($module), "::", stringify!($story)));
            })+)+
        }
    };
}
stories! {
    routes: it_says_who_it_is health_waits_and_says_so settings_come_and_go
        shutdown_records_are_kept;
    documents: what_is_acknowledged_is_found a_write_waits_for_its_primary;
    leaving: an_excluded_node_is_emptied a_copy_that_cannot_move_says_why
        a_vote_is_excluded_and_comes_back;
    restarts: a_node_is_restarted the_master_is_restarted the_whole_cluster_is_restarted;
    stops: an_only_copy_makes_the_cluster_red without_a_majority_there_is_no_master
        a_late_node_is_not_waited_for;
}

fn run(settings: &str, name: &str) {
    let story = STORIES.iter().find(|(story, _)| *story == name).expect("a story");
    run_story(&mut Three::started(settings), *story);
}

#[test]
fn no_story_is_left_out() {
    let all: BTreeSet<&str> = STORIES.iter().map(|(name, _)| *name).collect();
    assert_eq!(TOLD.iter().copied().collect::<BTreeSet<_>>(), all);
}

fn get(cluster: &Three, node: usize, target: &str) -> (u16, Value) {
    cluster.ask(node, "GET", target, None).expect("it answers")
}

#[test]
fn the_first_master_and_every_next_one_is_known_beforehand() {
    let mut cluster = Three::started("");
    let master = |cluster: &Three, node| {
        let (status, rows) = get(cluster, node, "/_cat/nodes?h=name,master&format=json");
        let rows: Vec<Value> = serde_json::from_value(rows).expect("rows");
        assert_eq!(status, 200);
        rows.into_iter().find(|row| row["master"] == "*").expect("a master")["name"].clone()
    };
    assert_eq!(master(&cluster, 1), "n0");
    cluster.stop(0);
    assert_eq!(get(&cluster, 2, "/_cluster/health?wait_for_nodes=2").0, 200);
    assert_eq!(master(&cluster, 2), "n1");
}

#[test]
fn a_replica_takes_its_time_if_it_is_told_to() {
    let cluster = Three::started("standin.recovery_ms: 600000");
    let (status, _) = cluster.ask(0, "PUT", "/docs", Some(&json!({}))).expect("it answers");
    assert_eq!(status, 200);
    let (_, health) = get(&cluster, 1, "/_cluster/health");
    let shards = (&health["active_shards"], &health["initializing_shards"]);
    assert_eq!((&health["status"], shards), (&json!("yellow"), (&json!(1), &json!(1))));
    let wanted = "/_cluster/health?wait_for_no_initializing_shards=true&timeout=0s";
    assert_eq!(get(&cluster, 1, wanted).0, 408);
}

#[test]
fn nodes_of_different_encryption_do_not_form_a_cluster() {
    let mut cluster = Three::started("");
    cluster.stop(2);
    cluster.configure(2, "transport.encrypted: true");
    cluster.start(2);
    let (status, body) = get(&cluster, 2, "/_cluster/health?timeout=300ms");
    assert_eq!((status, &body["status"]), (503, &json!(503)));
    assert_eq!(get(&cluster, 0, "/_cluster/health?wait_for_nodes=2&timeout=10s").0, 200);
    // A change of only one half has no effect: the cluster must change as a whole.
    for node in [0, 1] {
        cluster.stop(node);
        cluster.configure(node, "transport.encrypted: true");
        cluster.start(node);
    }
    assert_eq!(get(&cluster, 2, "/_cluster/health?wait_for_nodes=3&timeout=20s").0, 200);
}

#[test]
fn a_frozen_node_is_a_member_until_it_has_been_silent_for_too_long() {
    let mut cluster = Three::started("standin.fault_detection_ms: 4000");
    let began = Instant::now();
    cluster.engine(2).signal(SIGSTOP);
    assert_eq!(get(&cluster, 1, "/_cluster/health").1["number_of_nodes"], 3);
    assert_eq!(get(&cluster, 1, "/_cluster/health?wait_for_nodes=2&timeout=20s").0, 200);
    assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
    cluster.engine(2).signal(SIGCONT);
    assert_eq!(get(&cluster, 2, "/_cluster/health?wait_for_nodes=3&timeout=20s").0, 200);
}

#[test]
fn a_frozen_master_is_replaced_and_comes_back_as_a_member() {
    let mut cluster = Three::started("standin.fault_detection_ms: 1500");
    cluster.engine(0).signal(SIGSTOP);
    assert_eq!(get(&cluster, 1, "/_cluster/health?wait_for_nodes=2&timeout=20s").0, 200);
    let body = json!({"persistent": {"cluster.metadata.stayput": "while it was away"}});
    assert_eq!(
        cluster.ask(2, "PUT", "/_cluster/settings", Some(&body)).expect("it answers").0,
        200
    );
    cluster.engine(0).signal(SIGCONT);
    assert_eq!(get(&cluster, 1, "/_cluster/health?wait_for_nodes=3&timeout=20s").0, 200);
    let known = "/_cluster/health?wait_for_nodes=3&timeout=20s";
    assert_eq!(get(&cluster, 0, known).0, 200);
    let (_, settings) = get(&cluster, 0, "/_cluster/settings?flat_settings=true");
    assert_eq!(settings["persistent"]["cluster.metadata.stayput"], "while it was away");
}

#[test]
fn a_killed_node_is_off_the_list_at_once_and_its_documents_are_kept() {
    let mut cluster = Three::started("");
    for id in 0..5 {
        let (status, _) =
            cluster.ask(id % 3, "PUT", &format!("/docs/_doc/{id}"), Some(&json!({}))).expect("201");
        assert_eq!(status, 201);
    }
    assert_eq!(get(&cluster, 0, "/_cluster/health?wait_for_status=green").0, 200);
    for node in 0..3 {
        cluster.engine(node).signal(SIGKILL);
        assert_eq!(cluster.engine(node).wait(), 137);
        let other = (node + 1) % 3;
        let wanted = "/_cluster/health?wait_for_nodes=2&wait_for_status=yellow&timeout=20s";
        assert_eq!(get(&cluster, other, wanted).0, 200);
        assert_eq!(get(&cluster, other, "/docs/_count").1["count"], 5);
        cluster.start(node);
        let wanted = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=20s";
        assert_eq!(get(&cluster, other, wanted).0, 200);
    }
}

/// Writes through all nodes while one after the other is killed: every acknowledged document is
/// found, in every copy.
#[test]
fn nothing_that_was_acknowledged_is_lost_while_nodes_are_killed() {
    let mut cluster = Three::started("");
    let settings = json!({"settings": {"number_of_shards": 2, "number_of_replicas": 1}});
    assert_eq!(cluster.ask(0, "PUT", "/docs", Some(&settings)).expect("200").0, 200);
    let green = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=30s";
    assert_eq!(get(&cluster, 0, green).0, 200);
    let hosts = cluster.hosts();
    let done = AtomicBool::new(false);
    let acknowledged: Vec<usize> = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = (0..).take_while(|_| !done.load(Ordering::SeqCst)).filter(|id| {
                let target = format!("/docs/_doc/{id}?timeout=5s");
                let answer = ask_at(&hosts[id % 3], "PUT", &target, Some(&json!({"n": id})));
                matches!(answer, Some((201, _)))
            });
            written.collect()
        });
        for node in [0, 1, 2, 0] {
            cluster.engine(node).signal(SIGKILL);
            cluster.engine(node).wait();
            let other = (node + 1) % 3;
            let fewer = "/_cluster/health?wait_for_nodes=2&wait_for_status=yellow&timeout=30s";
            assert_eq!(get(&cluster, other, fewer).0, 200);
            cluster.start(node);
            assert_eq!(get(&cluster, other, green).0, 200);
        }
        done.store(true, Ordering::SeqCst);
        writer.join().expect("the writer ends")
    });
    assert!(acknowledged.len() > 10, "{acknowledged:?}");
    // Each node in turn is stopped, so that each copy has to answer.
    for node in 0..3 {
        cluster.stop(node);
        let other = (node + 1) % 3;
        let fewer = "/_cluster/health?wait_for_nodes=2&wait_for_status=yellow&timeout=30s";
        assert_eq!(get(&cluster, other, fewer).0, 200);
        for id in &acknowledged {
            let (status, found) = get(&cluster, other, &format!("/docs/_doc/{id}"));
            assert_eq!((status, &found["_source"]["n"]), (200, &json!(id)), "without n{node}");
        }
        cluster.start(node);
        assert_eq!(get(&cluster, other, green).0, 200);
    }
}

#[test]
fn a_restart_record_keeps_the_copies_for_the_node() {
    let mut cluster = Three::started("standin.distribution: elasticsearch");
    let settings = json!({"settings": {"index.unassigned.node_left.delayed_timeout": "0"}});
    assert_eq!(cluster.ask(0, "PUT", "/docs", Some(&settings)).expect("200").0, 200);
    assert_eq!(get(&cluster, 0, "/_cluster/health?wait_for_status=green").0, 200);
    let rows = get(&cluster, 0, "/_cat/shards?format=json&h=node,id,prirep").1;
    let row = rows.as_array().and_then(|rows| rows.iter().find(|row| row["prirep"] == "r"));
    let (name, id) = row.map(|row| (&row["node"], &row["id"])).expect("a replica");
    let node = (0..3).find(|node| cluster.name(*node) == *name).expect("a node");
    let target = format!("/_nodes/{}/shutdown", id.as_str().expect("an id"));
    let record = json!({"type": "restart", "reason": "r", "allocation_delay": "20m"});
    let other = (node + 1) % 3;
    assert_eq!(cluster.ask(other, "PUT", &target, Some(&record)).expect("200").0, 200);
    cluster.stop(node);
    let (_, health) = get(&cluster, other, "/_cluster/health?wait_for_nodes=2");
    assert_eq!(health["delayed_unassigned_shards"], 1);
    let rows = get(&cluster, other, "/_cat/shards?format=json&h=ur").1;
    assert!(rows.to_string().contains("NODE_RESTARTING"), "{rows}");
    cluster.start(node);
    let wanted = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=20s";
    assert_eq!(get(&cluster, other, wanted).0, 200);
}
