//! What the apiserver is asked before a pod is set back, with a stand-in.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use stayput_restart::{Change, StartDebt};
use stayput_standin::apiserver::{ApiServer, Fault, How};

use crate::metrics::Metrics;
use crate::observe::dry_runs::*;
use crate::observe::snapshot::{live, pod as seen};
use crate::pods::Reading;

#[tokio::test] // proves RESTART-71
async fn a_refusal_of_the_old_size_is_told_and_what_may_pass_is_not() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let container = |memory: &str| json!({"limits": {"memory": memory}});
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "logs-0"},
        "spec": {"containers": [{"name": "search", "image": "a", "resources": container("6Gi")}]},
    }))
    .expect("a pod");
    let made = pods.create(&PostParams::default(), &pod).await.expect("it is created");
    let reading = Reading { updates: true, ..Reading::default() };
    let facts = Arc::new(PodFacts::of(&made, &reading).expect("its facts"));
    let mut pod = seen(&facts);
    pod.live = live(&facts, 9199, &[]);
    let change = Change {
        seen: Some(container("4Gi").to_string()),
        wanted: Some(container("6Gi").to_string()),
    };
    let update = json!({
        "update": {
            "from": "logs-1", "to": "logs-2", "step": "resize", "because": [],
            "patch": {"resources": {"search": change}},
        },
    });
    let debt: StartDebt = serde_json::from_value(json!({
        "podUid": pod.uid, "node": "logs-0", "sequence": 3, "config": "mounted", "update": update,
    }))
    .expect("a debt");
    let mut ledger = Ledger::default();
    let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
    let mut dry_runs = UndoDryRuns::default();
    let denied = "memory limits cannot be decreased";
    server.inject(Fault::new(How::Deny(403, denied)).verb("patch").times(u32::MAX));
    dry_runs.read(&api, &ledger, &[(&facts, &pod)]).await;
    assert_eq!(dry_runs.of(&pod.uid), None, "nothing is to be set back");
    ledger.debts.start.push(debt);
    dry_runs.read(&api, &ledger, &[(&facts, &pod)]).await;
    let refused = dry_runs.of(&pod.uid).expect("it is refused");
    assert!(refused.why.contains(denied), "{refused:?}");
    let asked = refused.patch.resources["search"].wanted.clone();
    assert_eq!(asked, Some(container("4Gi").to_string()));
    for passes in [How::LoseRequest, How::Deny(401, "Unauthorized")] {
        server.clear_faults();
        server.inject(Fault::new(passes).verb("patch").times(u32::MAX));
        dry_runs.read(&api, &ledger, &[(&facts, &pod)]).await;
        assert_eq!(dry_runs.of(&pod.uid), None);
    }
}
