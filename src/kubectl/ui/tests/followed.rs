//! A cluster is followed through everything that an apiserver does to its clients.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, crd};
use stayput_standin::apiserver::{ApiServer, Fault, How};
use tokio::sync::watch;

use crate::html::{self, Page};
use crate::leader::{NAME, NAMESPACE};
use crate::tests::{cluster, idle, rolling, stored};
use crate::ui::feed::{Pace, Seen, Subject};
use crate::view::live::PageModel;

const SOON: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(3600);

struct Followed {
    server: ApiServer,
    clusters: Api<SearchCluster>,
    seen: watch::Receiver<Seen>,
}

impl Followed {
    async fn start(check: Duration) -> Self {
        let server = ApiServer::start().await.unwrap();
        let client: Client = server.client();
        let crds = Api::all(client.clone());
        crds.create(&PostParams::default(), &crd()).await.unwrap();
        let search = json!({"metadata": {"name": "search"}});
        let search: Namespace = serde_json::from_value(search).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &search).await.unwrap();
        let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), "search");
        let mut logs = cluster(&Value::Null, &json!({}));
        logs.metadata.resource_version = None;
        clusters.create(&PostParams::default(), &logs).await.unwrap();
        let subject = Subject {
            client,
            namespace: "search".into(),
            name: "logs".into(),
            pace: Pace { check, answer: Duration::from_secs(5), retry: SOON },
        };
        let found = subject.read().await.unwrap().expect("it is there");
        let model = found.model(PageModel::default());
        let page = Page::new(&model).into();
        let (sender, seen) = watch::channel(Seen { version: 1, page });
        tokio::spawn(subject.follow(found, model, sender));
        let mut followed = Self { server, clusters, seen };
        followed.status(idle()).await;
        followed.shows("Idle").await;
        followed
    }

    async fn status(&self, status: Value) {
        let patch = Patch::Merge(json!({ "status": stored(status) }));
        self.clusters.patch_status("logs", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the page does not show this any more.
    async fn hides(&mut self, text: &str) {
        let hides = |seen: &Seen| !html::cluster(&seen.page, "logs", 1).contains(text);
        self.seen.wait_for(hides).await.expect("it is followed");
    }

    /// Waits until the page shows this.
    async fn shows(&mut self, text: &str) {
        let shows = |seen: &Seen| html::cluster(&seen.page, "logs", 1).contains(text);
        self.seen.wait_for(shows).await.expect("it is followed");
    }
}

#[tokio::test] // proves PAGE-6
async fn a_change_is_shown_without_a_check() {
    let mut followed = Followed::start(NEVER).await;
    followed.status(rolling()).await;
    followed.shows("rolling, 1 of 3 done").await;
    // A watch that is broken off is begun again.
    followed.server.cut_watches();
    followed.status(json!({"phase": "Degraded"})).await;
    followed.shows("Degraded").await;
}

#[tokio::test] // proves PAGE-6
async fn an_apiserver_that_is_gone_is_said_and_comes_back() {
    let mut followed = Followed::start(SOON).await;
    followed.server.inject(Fault::new(How::Refuse(503)).times(u32::MAX));
    followed.server.cut_watches();
    followed.shows("Not live. Last read at").await;
    followed.shows("Idle").await;
    followed.server.clear_faults();
    followed.shows("Live, read at").await;
    followed.status(rolling()).await;
    followed.shows("rolling, 1 of 3 done").await;
}

#[tokio::test] // proves PAGE-6
async fn a_watch_that_hangs_is_found_by_a_check() {
    let mut followed = Followed::start(SOON).await;
    followed.server.hold_watches(true);
    followed.status(rolling()).await;
    followed.shows("rolling, 1 of 3 done").await;
}

#[tokio::test] // proves UPDATE-43
async fn that_no_reconciler_works_is_said_until_one_does() {
    let mut followed = Followed::start(SOON).await;
    let absent = "no reconciler has ever worked there; until one works, nothing is done";
    followed.shows(absent).await;
    let client = followed.clusters.clone().into_client();
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let namespace: Namespace = serde_json::from_value(namespace).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let renewed = MicroTime(k8s_openapi::jiff::Timestamp::now());
    let spec = LeaseSpec {
        holder_identity: Some("one".into()),
        renew_time: Some(renewed),
        ..LeaseSpec::default()
    };
    let metadata = ObjectMeta { name: Some(NAME.into()), ..ObjectMeta::default() };
    let lease = Lease { metadata, spec: Some(spec) };
    Api::namespaced(client, NAMESPACE).create(&PostParams::default(), &lease).await.unwrap();
    followed.hides(absent).await;
}

#[tokio::test] // proves PAGE-6
async fn rights_that_are_taken_away_are_named() {
    let mut followed = Followed::start(SOON).await;
    followed.server.inject(Fault::new(How::Refuse(403)).times(u32::MAX));
    followed.shows("you may not get searchclusters.stayput.dev logs in namespace search").await;
}

#[tokio::test] // proves PAGE-6
async fn one_that_is_deleted_is_said_to_be_and_may_be_made_again() {
    let mut followed = Followed::start(NEVER).await;
    followed.clusters.delete("logs", &Default::default()).await.unwrap();
    followed.shows("This SearchCluster is deleted").await;
    let mut logs = cluster(&Value::Null, &json!({}));
    logs.metadata.resource_version = None;
    followed.clusters.create(&PostParams::default(), &logs).await.unwrap();
    followed.shows("has not processed this SearchCluster").await;
}
