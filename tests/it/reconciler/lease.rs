//! The Lease of the leader: how it is renewed.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use stayput_controller::{Election, Settings};
use stayput_kube_access::cluster::crd;
use stayput_standin::apiserver::{ApiServer, Asked};

use super::fixture::Reconciler;
use super::objects::{NAMESPACE, eventually};

/// It is read only where somebody else may have written it.
#[tokio::test] // proves RESTART-122
async fn a_leader_renews_its_lease_without_reading_it() {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let client = server.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd()).await.expect("the definition is taken");
    let election = Election { namespace: NAMESPACE.into(), name: "leader".into() };
    let settings =
        Settings { name: "test".into(), election: Some(election), ..Settings::default() };
    let reconciler = Reconciler::start_with(client.clone(), settings);
    let asked = |verb: &'static str, code: u16| {
        let is_one = move |asked: &Asked| {
            asked.resource == "leases" && asked.verb == verb && asked.code == code
        };
        server.counts().matching(is_one)
    };
    eventually("it is renewed", async || (asked("update", 200) == 2).then_some(())).await;
    assert_eq!((asked("get", 404), asked("create", 201), asked("get", 200)), (1, 1, 0));

    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    leases.patch("leader", &PatchParams::default(), &touch).await.expect("it is taken");
    eventually("it is renewed again", async || (asked("update", 200) == 3).then_some(())).await;
    assert_eq!((asked("update", 409), asked("get", 200)), (1, 1));

    leases.delete("leader", &DeleteParams::default()).await.expect("it is deleted");
    eventually("it is made again", async || (asked("create", 201) == 2).then_some(())).await;
    // A version of what is gone: "resourceVersion should not be set on objects to be created".
    assert_eq!((asked("update", 500), asked("get", 404)), (1, 2));
    reconciler.end().await;
}
