//! Which pods a StatefulSet would not make again.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stayput_restart::Time;

use crate::observe::absent_pods::first_awaited;
use crate::pods::{PodFacts, Reading};
use stayput_kube_access::stateful_set::Set;

const NOW: u64 = 1_795_000_000_000;

fn set(spec: &Value) -> Set {
    let mut object = json!({
        "metadata": {"name": "logs", "uid": "u"},
        "spec": {"replicas": 3, "serviceName": "logs", "selector": {}, "template": {}},
    });
    for (key, value) in spec.as_object().expect("an object") {
        object["spec"][key] = value.clone();
    }
    Set::of(&serde_json::from_value::<StatefulSet>(object).expect("a StatefulSet"))
}

/// A pod that is ready since ten seconds, or not ready.
fn pod(name: &str, is_ready: bool) -> PodFacts {
    let condition = json!({
        "type": "Ready", "status": if is_ready { "True" } else { "False" },
        "lastTransitionTime": "2026-11-18T11:06:30Z",
    });
    let pod = json!({
        "metadata": {"name": name, "namespace": "search", "uid": name, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "search"}]},
        "status": {"conditions": [condition]},
    });
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    PodFacts::of(&pod, &Reading::default()).expect("its facts")
}

/// The first ordinal that a set waits for, and why.
fn awaited(spec: Value, pods: &[PodFacts], ours: &[&str]) -> Option<(i64, String)> {
    let pods: Vec<&PodFacts> = pods.iter().collect();
    let ours: BTreeSet<&str> = ours.iter().copied().collect();
    first_awaited(&set(&spec), &pods, &ours, Time(NOW))
}

#[test] // proves UPDATE-5
fn a_set_in_order_waits_for_the_first_pod_that_is_not_ready_and_a_parallel_one_for_none() {
    let pods = [pod("logs-0", false), pod("logs-1", true), pod("logs-2", true)];
    let (ordinal, why) = awaited(json!({}), &pods, &[]).expect("it waits");
    assert_eq!((ordinal, why.as_str()), (0, "logs-0 is not ready"));
    let ordered = json!({"podManagementPolicy": "OrderedReady"});
    assert_eq!(awaited(ordered, &pods, &[]).map(|(ordinal, _)| ordinal), Some(0));
    assert_eq!(awaited(json!({"podManagementPolicy": "Parallel"}), &pods, &[]), None);
    assert_eq!(awaited(json!({}), &pods[1..], &[]).expect("it waits").1, "logs-0 does not exist");
    let from_one = json!({"ordinals": {"start": 1}, "replicas": 2});
    assert_eq!(awaited(from_one, &pods, &[]), None, "it has none of a lower ordinal");
}

#[test] // proves UPDATE-5
fn a_pod_that_we_are_restarting_comes_back_and_one_that_is_deleted_is_waited_for() {
    let mut pods = [pod("logs-0", true), pod("logs-1", false), pod("logs-2", false)];
    assert_eq!(awaited(json!({}), &pods, &["logs-1", "logs-2"]), None);
    pods[0].terminating = true;
    let awaited = awaited(json!({}), &pods, &["logs-1", "logs-2"]);
    assert_eq!(awaited.expect("it waits"), (0, "logs-0 is being deleted".into()));
}

#[test] // proves UPDATE-5
fn a_pod_counts_only_after_the_least_time_that_it_must_be_ready() {
    let mut pods = [pod("logs-0", true), pod("logs-1", true), pod("logs-2", true)];
    pods.iter_mut().for_each(|pod| pod.ready_since = Some(Time(NOW - 10_000)));
    assert_eq!(awaited(json!({"minReadySeconds": 10}), &pods, &[]), None);
    let (ordinal, why) = awaited(json!({"minReadySeconds": 11}), &pods, &[]).expect("it waits");
    assert_eq!((ordinal, why.as_str()), (0, "logs-0 is not ready for 11 s yet (minReadySeconds)"));
}
