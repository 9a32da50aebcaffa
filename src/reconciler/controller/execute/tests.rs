//! Nothing is sent to an engine without the Lease. There is no engine here: a request to it would
//! fail for another reason.

use serde_json::json;

use super::*;
use stayput_restart::Marker;

async fn execute(lease: &Lease, action: &Action) -> Outcome {
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
    let executor = Executor {
        observer: &Observer::of_nothing_for_test(),
        cluster: &cluster.expect("a SearchCluster"),
        policy: &Policy::default(),
        metrics: &Metrics::new(),
        lease,
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
        Action::PutRecord { node_id: node(), reason: "r1".into() },
        Action::DeleteRecord { node_id: node() },
        Action::ExcludeVoter { node: node() },
        Action::ClearVotingExclusions,
    ]
}

#[tokio::test]
async fn nothing_is_written_to_the_engine_without_the_lease() {
    for action in engine_actions() {
        let outcome = execute(&Lease::lost_for_test(), &action).await;
        assert!(matches!(outcome, Err(Failure::LeaseLost)), "{action:?}: {outcome:?}");
        let outcome = execute(&Lease::not_needed(), &action).await;
        assert!(matches!(outcome, Err(Failure::EngineNotObserved)), "{action:?}: {outcome:?}");
    }
}

#[test]
fn a_flush_may_take_30_seconds() {
    assert_eq!(FLUSH_TIMEOUT, Duration::from_secs(30));
}
