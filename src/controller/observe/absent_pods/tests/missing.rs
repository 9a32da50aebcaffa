//! When a pod that is not there is missing.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::core::Selector;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::apiserver::ApiError;
use crate::observe::absent_pods::{Missing, Owners};
use crate::pods::{PodFacts, Reading};
use stayput_kube_access::stateful_set::Set;

/// Three pods that are made at once.
fn set(change: &Value) -> Option<Set> {
    let mut object = json!({
        "metadata": {"name": "logs", "uid": "u"},
        "spec": {
            "replicas": 3, "serviceName": "logs", "selector": {}, "podManagementPolicy": "Parallel",
            "template": {"metadata": {"labels": {"app": "logs"}}},
        },
    });
    for (part, fields) in change.as_object().expect("an object") {
        for (key, value) in fields.as_object().expect("an object") {
            object[part][key] = value.clone();
        }
    }
    Some(Set::of(&serde_json::from_value::<StatefulSet>(object).expect("a StatefulSet")))
}

fn pod(name: &str, ready: bool) -> Arc<PodFacts> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "search", "uid": name, "resourceVersion": "1"},
        "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    }))
    .expect("a pod");
    Arc::new(PodFacts::of(&pod, &Reading::default()).expect("its facts"))
}

/// Looks, after so many seconds since the first look.
struct Looks {
    missing: Missing,
    begin: Instant,
    selector: Selector,
}

impl Looks {
    fn new(selector: &[(&'static str, &'static str)]) -> Self {
        let selector = selector.iter().copied().collect();
        Self { missing: Missing::default(), begin: Instant::now(), selector }
    }

    fn at(&mut self, seconds: u64, set: Option<Set>, pods: &[Arc<PodFacts>]) -> Vec<String> {
        let mut owners = Owners::default();
        owners.put("logs", Ok(set));
        self.look(seconds, &owners, pods)
    }

    fn look(&mut self, seconds: u64, owners: &Owners, pods: &[Arc<PodFacts>]) -> Vec<String> {
        let now = self.begin + Duration::from_secs(seconds);
        let missing = self.missing.look(owners, pods, &self.selector, now);
        missing.into_iter().map(|missing| missing.name).collect()
    }
}

#[test] // proves RESTART-112
fn a_pod_is_missing_when_its_set_had_ten_seconds_to_make_it() {
    let mut looks = Looks::new(&[("app", "logs")]);
    let pods = [pod("logs-0", true), pod("logs-1", true), pod("logs-2", true)];
    let none = Vec::<String>::new();
    assert_eq!(looks.at(0, set(&json!({})), &pods), none);
    assert_eq!(looks.missing.sets().len(), 0, "the set need not be read");
    assert_eq!(looks.at(100, set(&json!({})), &pods[..2]), none);
    assert_eq!(looks.missing.sets().into_iter().collect::<Vec<_>>(), ["logs"]);
    let due = looks.missing.due_in(looks.begin + Duration::from_secs(103));
    assert_eq!(due, Some(Duration::from_secs(7)));
    assert_eq!(looks.at(109, set(&json!({})), &pods[..2]), none);
    assert_eq!(looks.at(110, set(&json!({})), &pods[..2]), ["logs-2"]);
    assert_eq!(looks.missing.due_in(looks.begin + Duration::from_secs(110)), None);
    // Nothing is known of the set: the pod that is there is not missing, the other one is.
    let mut unread = Owners::default();
    unread.put("logs", Err(ApiError::Incomplete("date".into())));
    assert_eq!(looks.look(120, &unread, &pods[..2]), ["logs-2"]);
    assert_eq!(looks.at(130, set(&json!({})), &pods), none);
    // All of its pods.
    assert_eq!(looks.at(140, set(&json!({})), &[]), none);
    assert_eq!(looks.at(150, set(&json!({})), &[]), ["logs-0", "logs-1", "logs-2"]);
}

#[test] // proves RESTART-112
fn what_the_set_does_not_want_is_not_missing() {
    let pods = [pod("logs-0", true), pod("logs-1", true)];
    let after = |seconds: u64, set: Option<Set>, selector: &[(&'static str, &'static str)]| {
        let mut looks = Looks::new(selector);
        looks.at(0, set.clone(), &pods);
        looks.at(seconds, set, &pods)
    };
    let ours = [("app", "logs")];
    assert_eq!(after(60, set(&json!({})), &ours), ["logs-2"]);
    assert_eq!(after(60, set(&json!({"spec": {"replicas": 2}})), &ours), [""; 0]);
    assert_eq!(after(60, None, &ours), [""; 0]);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-21T03:00:00Z"}});
    assert_eq!(after(60, set(&deleted), &ours), [""; 0]);
    assert_eq!(after(60, set(&json!({})), &[("app", "other")]), [""; 0], "it is not selected");
    let from_two = json!({"spec": {"replicas": 1, "ordinals": {"start": 2}}});
    let index = [("apps.kubernetes.io/pod-index", "2")];
    assert_eq!(after(60, set(&from_two), &index), ["logs-2"]);
}

#[test] // proves RESTART-112
fn a_set_in_order_has_time_from_when_the_pod_before_is_ready() {
    let ordered = || set(&json!({"spec": {"podManagementPolicy": "OrderedReady"}}));
    let (starts, ready) =
        ([pod("logs-0", true), pod("logs-1", false)], [pod("logs-0", true), pod("logs-1", true)]);
    let mut looks = Looks::new(&[("app", "logs")]);
    for seconds in [0, 60] {
        assert_eq!(looks.at(seconds, ordered(), &starts), [""; 0]);
        assert_eq!(looks.missing.due_in(looks.begin), None);
    }
    assert_eq!(looks.at(100, ordered(), &ready), [""; 0]);
    assert_eq!(looks.at(110, ordered(), &ready), ["logs-2"]);
    assert_eq!(looks.at(120, ordered(), &starts), ["logs-2"], "it was missing before");
}
