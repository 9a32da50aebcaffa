//! ECK replaces its pods, and a person asks for a restart meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::routing::{DOCUMENTS, documents};
use super::stage::{NODES, Stage};
use crate::pods::fixture::Fixture;
use crate::support::wait::{eventually, eventually_briefly};

/// What the manager's log says then.
const SPAWNED: &str = "the engine was spawned";

/// An engine that was spawned so long after the request was accepted is newer than the request, whatever of the two
/// seconds for the clocks of two machines and of the moments that are known to the second comes together.
const NEWER: Duration = Duration::from_secs(3);

/// Pods that ECK makes after the request run engines that are newer than the request: none of these is stopped.
pub(super) fn replaced_by_eck(stage: &mut Stage) {
    let before = uids(&stage.fixture);
    let began = Instant::now();
    let trigger = "eck.k8s.elastic.co/restart-trigger=1";
    stage.fixture.run(&["annotate", "elasticsearch", "logs", trigger]);
    eventually_briefly("ECK makes a pod anew", || {
        let now = uids(&stage.fixture);
        now.iter().any(|(name, uid)| before[name] != *uid).then_some(())
    });
    stage.fixture.people.run("kubectl stayput --namespace search restart logs");
    eventually("ECK has made all pods anew", || {
        let now = uids(&stage.fixture);
        let all = now.len() == NODES.len() && now.iter().all(|(name, uid)| before[name] != *uid);
        (all && stage.elasticsearch()["status"]["phase"] == "Ready").then_some(())
    });
    let fixture = &stage.fixture;
    fixture.run(&[
        "wait",
        "--for=condition=Ready",
        "--timeout=5m",
        "pod",
        "--selector",
        "app=logs",
    ]);
    fixture.until_idle();
    println!("ECK has replaced three pods beside a restart: {} ms", began.elapsed().as_millis());
    let history = &fixture.logs()["status"]["history"];
    let outcomes: Vec<&Value> =
        history.as_array().expect("a list").iter().map(|entry| &entry["outcome"]).collect();
    assert_eq!(outcomes, [&json!("done"); 2], "{history:#}");
    let accepted = history[1]["started"].as_str().map(humantime::parse_rfc3339);
    let accepted = accepted.expect("a moment").expect("a moment");
    println!("the request was accepted at {accepted:?}");
    let mut newer = 0;
    for name in NODES {
        let spawned = spawned(fixture, name);
        println!("{name}: its engine was spawned at {spawned:?}");
        if spawned[0] > accepted + NEWER {
            newer += 1;
            assert_eq!(spawned.len(), 1, "{name} was stopped again");
        }
    }
    assert!(newer >= 2, "ECK has made them before the request");
    stage.meet_new_pods();
    stage.until_green();
    assert_eq!(documents(stage), DOCUMENTS);
}

fn uids(fixture: &Fixture) -> BTreeMap<String, String> {
    let pods = fixture.pods();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let pod = |pod: &Value| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]));
    pods.iter().map(pod).collect()
}

/// When the engine in this pod was spawned, each time.
fn spawned(fixture: &Fixture, pod: &str) -> Vec<SystemTime> {
    let log = fixture.run(&["logs", pod, "--container=elasticsearch"]);
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let at = lines.filter(|line| line["message"] == SPAWNED).map(|line| {
        let at = line["@timestamp"].as_str().expect("a moment");
        humantime::parse_rfc3339(at).expect("a moment")
    });
    at.collect()
}
