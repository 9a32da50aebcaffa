//! From an `Elasticsearch` to a rolling restart in the pods that ECK has made.

use std::time::Instant;

use serde_json::{Value, json};

use super::replaced::replaced_by_eck;
use super::routing::{DOCUMENTS, Seen, create, documents};
use super::stage::{NODES, Stage};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::observe_all;
use crate::support::wait::eventually;

const STAYPUT: &str = "/stayput/stayput";

#[test] // proves RESTART-124, RESTART-128, RESTART-152
fn restarted_in_the_same_pods_beside_eck() {
    let Some(mut stage) = Stage::set_up("pods::eck::walk::restarted_in_the_same_pods_beside_eck")
    else {
        return;
    };
    a_formed_cluster_is_not_restarted(&stage);
    create(&stage);
    stage.until_green();
    eck_deletes_a_shutdown_record(&stage);

    let fixture = &stage.fixture;
    let before = observe_all(fixture, STAYPUT);
    let mut at_first = Seen::default();
    at_first.look(&stage);
    let began = Instant::now();
    let seen = Seen::during(&stage, || {
        let printed = fixture.people.run(
            "kubectl stayput --namespace search restart logs
             kubectl stayput --namespace search watch logs --timeout 15m",
        );
        println!("{printed}");
        stage.until_green();
    });
    println!("three nodes restarted beside ECK: {} ms", began.elapsed().as_millis());

    let logs = fixture.logs();
    assert_eq!(logs["status"]["history"][0]["outcome"], "done", "{:#}", logs["status"]);
    let after = observe_all(fixture, STAYPUT);
    assert!(after.keys().eq(NODES), "{after:#?}");
    for (name, node) in &after {
        assert_eq!(node.stays, before[name].stays, "{name} is another pod or container");
        assert_ne!(node.run(), before[name].run(), "{name} was not restarted");
    }
    assert_eq!(seen.copies, at_first.copies, "a copy was made anew on another node");
    assert!(seen.allocation.contains("primaries"), "{seen:?}");
    assert!(seen.records.is_empty(), "{seen:?}");
    let settings = stage.ask("_cluster/settings?flat_settings=true").expect("settings");
    assert_eq!(settings, json!({ "persistent": {}, "transient": {} }));
    assert_eq!(documents(&stage), DOCUMENTS);
    one_engine_at_a_time(fixture);
    fixture.until_idle();
    nothing_is_pending(fixture);
    eventually("ECK is content", || {
        (stage.elasticsearch()["status"]["phase"] == "Ready").then_some(())
    });

    replaced_by_eck(&mut stage);
}

/// Once the cluster has formed, the nodes run on another config than the one that is mounted: ECK has taken the first
/// masters out. That is no reason for a restart, also where a changed config is one.
fn a_formed_cluster_is_not_restarted(stage: &Stage) {
    let fixture = &stage.fixture;
    // The kubelet renews the files of a pod that changes at once, others within two minutes.
    fixture.run(&["annotate", "pods", "--selector=app=logs", "seen=now"]);
    eventually("the managers see another config", || {
        let nodes = observe_all(fixture, STAYPUT);
        nodes.values().all(|node| node.status["config"]["drift"] == true).then_some(())
    });
    for strategy in ["rolling", "none"] {
        fixture.configure(&json!({ "restart": { "onConfigChange": strategy } }));
        eventually("the reconciler has seen the SearchCluster", || {
            let logs = fixture.logs();
            let seen = logs["status"]["observedGeneration"] == logs["metadata"]["generation"];
            seen.then_some(())
        });
        nothing_is_pending(fixture);
    }
    assert_eq!(fixture.logs()["status"]["history"], json!(null), "nothing was restarted");
}

/// Checks by the managers' logs that each engine was stopped once, and only while all others were ready.
fn one_engine_at_a_time(fixture: &Fixture) {
    let mut changes = Vec::new();
    for name in NODES {
        let log = fixture.run(&["logs", name, "--container=elasticsearch"]);
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for line in lines.filter(|line| line["message"] == "engine state changed") {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            changes.push((text(&line["@timestamp"]), text(&line["stayput"]["state"]), name));
        }
    }
    changes.sort();
    let states = changes.iter().map(|(_, state, _)| state.as_str());
    let states: Vec<&str> =
        states.filter(|state| ["stopping", "running"].contains(state)).collect();
    let mut expected = vec!["running"; NODES.len()];
    expected.extend(["stopping", "running"].repeat(NODES.len()));
    assert_eq!(states, expected, "{changes:#?}");
}

fn nothing_is_pending(fixture: &Fixture) {
    let status = &fixture.logs()["status"];
    assert_eq!(status["phase"], "Idle", "{status:#}");
    assert_eq!(status["counts"]["pendingRestart"], 0, "{status:#}");
}

/// ECK deletes a record of a node that is in the cluster.
fn eck_deletes_a_shutdown_record(stage: &Stage) {
    let nodes = stage.ask("_nodes?filter_path=nodes.*.name").expect("an answer");
    let id = nodes["nodes"].as_object().and_then(|nodes| nodes.keys().next()).expect("a node");
    let record = json!({ "type": "restart", "reason": "a test" });
    let target = format!("_nodes/{id}/shutdown");
    stage.engines.ask("PUT", &target, Some(&record)).expect("it is taken");
    let began = Instant::now();
    // It looks at all records when anything of the cluster changes.
    stage.fixture.run(&["annotate", "elasticsearch", "logs", "seen=now", "--overwrite"]);
    eventually("ECK deletes the record", || {
        let records = stage.ask("_nodes/shutdown")?;
        (records["nodes"] == json!([])).then_some(())
    });
    println!("ECK has deleted a shutdown record: {} ms", began.elapsed().as_millis());
}
