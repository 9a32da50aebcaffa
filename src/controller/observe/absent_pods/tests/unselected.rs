//! Pods that no selector matches, from a stand-in apiserver.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stayput_restart::Ledger;
use stayput_standin::apiserver::{ApiServer, Fault, How};
use stayput_standin::harness::objects;

use crate::apiserver::Apiserver;
use crate::metrics::Metrics;
use crate::observe::absent_pods::read;

/// The engine of the pod with this uid must be started.
fn ledger(uid: &str) -> Ledger {
    let start = json!({"podUid": uid, "node": "logs-2", "sequence": 4, "config": "mounted"});
    serde_json::from_value(json!({"debts": {"start": [start]}})).expect("a ledger")
}

#[tokio::test] // proves RESTART-108
async fn a_pod_that_is_owed_something_is_there_until_the_apiserver_says_that_it_is_gone() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let pod = serde_json::from_value(objects::pod("logs-2")).expect("a pod");
    let made = pods.create(&PostParams::default(), &pod).await.expect("it is created");
    let uid = made.metadata.uid.expect("a uid");
    let owed = BTreeSet::from([uid.clone()]);

    assert_eq!(read(&api, "default", &ledger(&uid)).await, owed);
    assert_eq!(read(&api, "default", &ledger("another")).await, BTreeSet::new());
    pods.delete("logs-2", &DeleteParams::default()).await.expect("it is deleted");
    assert_eq!(read(&api, "default", &ledger(&uid)).await, BTreeSet::new());

    server.inject(Fault::new(How::Refuse(500)).verb("list").resource("pods"));
    assert_eq!(read(&api, "default", &ledger(&uid)).await, owed, "nobody knows");
}

#[tokio::test]
async fn nobody_is_asked_while_nothing_is_owed() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
    server.inject(Fault::new(How::Refuse(500)).verb("list").resource("pods"));
    assert_eq!(read(&api, "default", &Ledger::default()).await, BTreeSet::new());
    assert!(!server.is_faultless(), "it is not asked");
}
