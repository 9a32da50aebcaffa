//! Nothing is sent to an engine without the Lease. There is no engine here: a request to it would
//! fail for another reason. And slow patches hold nothing up.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::*;
use crate::apiserver::Apiserver;
use stayput_api::{Code, ConfigChoice, Problem};
use stayput_http::manager_client::Refused;
use stayput_restart::{Change, Marker};
use stayput_standin::apiserver::{ApiServer, Fault, How};

fn cluster() -> SearchCluster {
    let cluster = serde_json::from_value(json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "logs" } } },
            "engine": { "scheme": "http" },
            "manager": { "caSecret": "logs-manager-ca", "auth": { "serviceAccountToken": {} } },
        },
    }));
    cluster.expect("a SearchCluster")
}

async fn execute(lease: &Lease, action: &Action) -> Outcome {
    let executor = Executor {
        observer: &Observer::of_nothing_for_test(),
        cluster: &cluster(),
        metrics: &Metrics::new(),
        lease,
        reading: Some(&Reading::default()),
    };
    executor.execute_all(&[action]).await.outcome
}

/// Each action that is a request to the engine.
fn engine_actions() -> Vec<Action> {
    let before = AllocationBefore::default;
    let node = || "logs-1".to_owned();
    let marker = Marker { cluster: "search/logs".into(), restart: "r1".into(), before: before() };
    vec![
        Action::TightenAllocation { value: "primaries".into(), marker },
        Action::RestoreAllocation { before: before() },
        Action::Flush { node: node() },
        Action::PutRecord { node_id: node(), reason: "r1".into(), allocation_delay: 60_000 },
        Action::DeleteRecord { node_id: node() },
        Action::ExcludeVoter { node: node() },
        Action::ClearVotingExclusions,
        Action::ExcludeNames { persistent: Some(Some(node())), transient: None },
    ]
}

#[tokio::test] // proves RESTART-119
async fn nothing_is_written_to_the_engine_without_the_lease() {
    for action in engine_actions() {
        let outcome = execute(&Lease::lost_for_test(), &action).await;
        assert!(matches!(outcome, Err(Failure::LeaseLost)), "{action:?}: {outcome:?}");
        let outcome = execute(&Lease::not_needed(), &action).await;
        assert!(matches!(outcome, Err(Failure::EngineNotObserved)), "{action:?}: {outcome:?}");
    }
}

#[tokio::test] // proves RESTART-119
async fn no_node_is_removed_without_the_lease() {
    let set = || "data".to_owned();
    for action in
        [Action::RemoveNode { set: set(), replicas: 2 }, Action::RemoveNodeSet { set: set() }]
    {
        let outcome = execute(&Lease::lost_for_test(), &action).await;
        assert!(matches!(outcome, Err(Failure::LeaseLost)), "{action:?}: {outcome:?}");
        let outcome = execute(&Lease::not_needed(), &action).await;
        assert!(matches!(outcome, Err(Failure::StatusOvertaken)), "{action:?}: {outcome:?}");
    }
}

#[tokio::test] // proves RESTART-114
async fn what_a_manager_does_not_take_is_a_failure_in_its_words() {
    let answered = |code| {
        let executor = Executor {
            observer: &Observer::of_nothing_for_test(),
            cluster: &cluster(),
            metrics: &Metrics::new(),
            lease: &Lease::not_needed(),
            reading: Some(&Reading::default()),
        };
        let problem = Box::new(Problem::new(code, "unknown field `exit`"));
        let refused = Refused { problem, body: Default::default(), date: None };
        let answer = executor.manager_answer("stop", "u", Err(refused.into()));
        answer.err().map(|failure| failure.to_string())
    };
    let text = "the manager of u does not take a stop request: unknown field `exit` (invalid_body, HTTP 400)";
    assert_eq!(answered(Code::InvalidBody).as_deref(), Some(text));
    for code in [Code::NotFound, Code::MethodNotAllowed, Code::Forbidden, Code::SequenceJump] {
        assert!(answered(code).is_some(), "{code:?}");
    }
    // The next observation reads these.
    for code in [Code::StaleSequence, Code::ChecksumMismatch, Code::JournalUnavailable] {
        assert_eq!(answered(code), None, "{code:?}");
    }
}

#[test] // proves RESTART-15
fn a_flush_may_take_30_seconds() {
    assert_eq!(FLUSH_TIMEOUT, Duration::from_secs(30));
}

#[tokio::test(start_paused = true)] // proves RESTART-32
async fn while_patches_take_long_the_next_look_does_not_wait_for_all_of_them() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let metrics = Arc::new(Metrics::new());
    let api = Apiserver::new(server.client(), Arc::clone(&metrics));
    let mut observer = Observer::new(api, Arc::clone(&metrics), None, "default", "logs");
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let mut actions = Vec::new();
    for number in 0..40 {
        let pod = json!({
            "metadata": {"name": format!("logs-{number}")},
            "spec": {"containers": [{"name": "search", "image": "search"}]},
        });
        let pod = serde_json::from_value(pod).expect("a pod");
        let made = pods.create(&PostParams::default(), &pod).await.expect("it is created");
        let facts = PodFacts::of(&made, &Reading::default()).expect("its facts");
        let shown = Change { seen: None, wanted: Some("r1 start".to_owned()) };
        let changes = BTreeMap::from([(annotation::SHOWN.to_owned(), shown)]);
        actions.push(Action::PatchPod { uid: facts.uid.clone(), changes });
        observer.pods.put(facts);
    }
    server.inject(Fault::new(How::Delay(PATCHING_WINDOW)).verb("patch").times(u32::MAX));
    let executor = Executor {
        observer: &observer,
        cluster: &cluster(),
        metrics: &metrics,
        lease: &Lease::not_needed(),
        reading: Some(&Reading::default()),
    };
    let executed = executor.execute_all(&actions.iter().collect::<Vec<_>>()).await;
    assert!(executed.outcome.is_ok(), "{:?}", executed.outcome);
    assert_eq!(executed.pods.len(), 16, "as many as are sent at the same time");
}

#[tokio::test] // proves RESTART-33
async fn a_start_that_no_client_can_send_has_failed_and_that_of_a_pod_that_is_gone_is_skipped() {
    let start = |uid: &str| Action::Start {
        uid: uid.into(),
        sequence: 2,
        checksum: None,
        config: ConfigChoice::Mounted,
    };
    let outcome = execute(&Lease::not_needed(), &start("gone")).await;
    assert!(matches!(outcome, Ok(false)), "{outcome:?}");
    let mut observer = Observer::of_nothing_for_test();
    let pod = json!({
        "metadata": {"name": "logs-0", "namespace": "search", "uid": "u", "resourceVersion": "1"},
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    observer.pods.put(PodFacts::of(&pod, &Reading::default()).expect("its facts"));
    let executor = Executor {
        observer: &observer,
        cluster: &cluster(),
        metrics: &Metrics::new(),
        lease: &Lease::not_needed(),
        reading: Some(&Reading::default()),
    };
    let outcome = executor.execute_all(&[&start("u")]).await.outcome;
    let Err(Failure::NoClient { pod, why }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(pod, "logs-0");
    assert!(why.contains("has not answered yet"), "{why}");
}
