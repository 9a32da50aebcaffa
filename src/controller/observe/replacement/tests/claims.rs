//! Volume claims from a stand-in apiserver.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use stayput_restart::Ledger;
use stayput_standin::apiserver::{ApiServer, Fault, How};

use crate::apiserver::Apiserver;
use crate::metrics::Metrics;
use crate::observe::replacement::Claims;
use crate::pods::{PodFacts, Reading};

/// A pod of that uid, on a Kubernetes node or on none yet.
fn pod(uid: &str, node: Option<&str>) -> Arc<PodFacts> {
    let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-logs-2"}});
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "logs-2", "namespace": "default", "uid": uid, "resourceVersion": "1",
        },
        "spec": {"containers": [{"name": "search"}], "nodeName": node, "volumes": [claim]},
    }))
    .expect("a pod");
    let reading = Reading { updates: true, ..Reading::default() };
    Arc::new(PodFacts::of(&pod, &reading).expect("its facts"))
}

/// The pod `old` is being replaced, or only its container.
fn ledger(step: &str) -> Ledger {
    let member = json!({
        "podUid": "old", "pod": "logs-2", "node": "logs-2", "step": "restarting",
        "since": "2026-11-21T03:09:20Z",
        "update": {"update": {"from": "a", "to": "b", "step": step, "because": []}},
    });
    let restart = json!({
        "request": {"id": "one", "strategy": "rolling"}, "started": "2026-11-21T03:09:00Z",
        "members": [member],
    });
    serde_json::from_value(json!({"restart": restart})).expect("a ledger")
}

async fn make(claims: &Api<PersistentVolumeClaim>) -> Value {
    let claim = json!({"metadata": {"name": "data-logs-2"}, "spec": {}});
    let claim = serde_json::from_value(claim).expect("a claim");
    let made = claims.create(&PostParams::default(), &claim).await.expect("it is created");
    json!({"data-logs-2": made.metadata.uid.expect("a uid")})
}

#[tokio::test] // proves UPDATE-10
async fn the_pod_in_the_place_of_one_that_is_replaced_is_asked_for_its_claims() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(server.client(), "default");
    let first = make(&claims).await;
    let mut reader = Claims::default();
    // Its own pod, and one of which only the container is made anew.
    reader.read(&api, &ledger("replace"), &[pod("old", Some("n1"))]).await;
    reader.read(&api, &ledger("container"), &[pod("new", Some("n1"))]).await;
    assert_eq!(reader.of("new"), Ok([].into()));

    // Before it is on a Kubernetes node, its claim may still go.
    reader.read(&api, &ledger("replace"), &[pod("new", None)]).await;
    assert_eq!(json!(reader.of("new").expect("it is known")), first);
    claims.delete("data-logs-2", &DeleteParams::default()).await.expect("it is deleted");
    reader.read(&api, &ledger("replace"), &[pod("new", None)]).await;
    let why = reader.of("new").expect_err("there is none").message;
    assert!(why.contains("the volume claim data-logs-2 cannot be read"), "{why}");
    let second = make(&claims).await;
    assert_ne!(first, second);
    reader.read(&api, &ledger("replace"), &[pod("new", Some("n1"))]).await;
    assert_eq!(json!(reader.of("new").expect("it is known")), second);
    // From then on it stays.
    server.inject(Fault::new(How::Refuse(500)).verb("get").resource("persistentvolumeclaims"));
    reader.read(&api, &ledger("replace"), &[pod("new", Some("n1"))]).await;
    assert_eq!(json!(reader.of("new").expect("it is known")), second);
    assert!(!server.is_faultless(), "it is not asked for again");
}

#[tokio::test] // proves UPDATE-10
async fn without_the_right_to_read_claims_nothing_is_known_of_them() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
    server.inject(Fault::new(How::Refuse(403)).verb("get").resource("persistentvolumeclaims"));
    let mut reader = Claims::default();
    reader.read(&api, &ledger("replace"), &[pod("new", Some("n1"))]).await;
    assert_eq!(reader.of("new"), Ok([].into()));
    assert!(server.is_faultless());
}
