//! Nothing is sent to an engine without the Lease. There is no engine here: a request to it would
//! fail for another reason.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::controller::apiserver::Apiserver;

async fn restore(lease: &Lease) -> Outcome {
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
    let client = kube::Client::try_from(nowhere).expect("a client");
    let metrics = Arc::new(Metrics::new());
    let api = Apiserver::new(client, Arc::clone(&metrics));
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
        observer: &Observer::new(api, Arc::clone(&metrics), None, "search", "logs"),
        cluster: &cluster.expect("a SearchCluster"),
        policy: &Policy::default(),
        metrics: &metrics,
        lease,
    };
    let action = Action::RestoreAllocation { before: AllocationBefore::default() };
    executor.execute_all(&[&action]).await.outcome
}

#[tokio::test]
async fn nothing_is_written_to_the_engine_without_the_lease() {
    let outcome = restore(&Lease::lost_for_test()).await;
    assert!(matches!(outcome, Err(Failure::LeaseLost)), "{outcome:?}");
    let outcome = restore(&Lease::not_needed()).await;
    assert!(matches!(outcome, Err(Failure::EngineNotObserved)), "{outcome:?}");
}
