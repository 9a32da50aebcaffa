//! Secrets of removed node sets, against a stand-in apiserver.

mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use super::Verdict;
use crate::apiserver::{Apiserver, only};
use crate::declared::objects::Applied;
use crate::declared::objects::collect;
use crate::failure::Failure;
use crate::lease::Lease;
use crate::metrics::Metrics;
use stayput_declare::{Cluster, Kind, Object, Observed};
use stayput_kube_access::cluster::SearchCluster;
use stayput_standin::apiserver::{ApiServer, Fault, How};

const MINUTE: u64 = 60_000;

struct Fixture {
    server: ApiServer,
    api: Apiserver,
    cluster: Cluster,
}

impl Fixture {
    async fn new() -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
        let cluster = json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": {"name": "logs", "namespace": "default", "uid": "ours"},
            "spec": {
                "engine": {"distribution": "opensearch", "version": "2.19.3"},
                "nodeSets": [{"name": "all", "count": 1}],
            },
        });
        let cluster: SearchCluster = serde_json::from_value(cluster).expect("a SearchCluster");
        let cluster = cluster.declaration("stayput:stayput-reconciler").expect("a declaration");
        Self { server, api, cluster }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.server.client(), "default")
    }

    /// The config of a set; `owner` is the uid of a SearchCluster.
    async fn secret(&self, set: &str, owner: &str) {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("logs-{set}-config"),
                "labels": {"stayput.dev/cluster": "logs", "stayput.dev/node-set": set},
                "ownerReferences": [{
                    "apiVersion": "stayput.dev/v1alpha1",
                    "kind": "SearchCluster",
                    "name": "logs",
                    "uid": owner,
                }],
            },
        });
        let secret = serde_json::from_value(secret).expect("a Secret");
        self.secrets().create(&PostParams::default(), &secret).await.expect("it is created");
    }

    async fn left(&self) -> BTreeSet<String> {
        let list = self.secrets().list(&ListParams::default()).await.expect("an answer");
        list.items.into_iter().filter_map(|secret| secret.metadata.name).collect()
    }

    async fn collect(&self, since: &BTreeMap<String, u64>, minute: u64) -> BTreeMap<String, u64> {
        let observed = Observed::default();
        let now = minute * MINUTE;
        collect(&self.api, &self.cluster, &observed, since, now).await.expect("an answer")
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("logs-{name}-config")).collect()
}

#[tokio::test] // proves DECLARE-31
async fn only_our_own_secret_of_a_removed_set_is_deleted_and_only_after_its_time() {
    let fixture = Fixture::new().await;
    for set in ["all", "old", "mounted"] {
        fixture.secret(set, "ours").await;
    }
    fixture.secret("foreign", "theirs").await;
    let volume: Value = json!({"name": "c", "secret": {"secretName": "logs-mounted-config"}});
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "somebody"},
        "spec": {"containers": [{"name": "a", "image": "a"}], "volumes": [volume]},
    });
    let pods: Api<Pod> = Api::namespaced(fixture.server.client(), "default");
    let pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await.expect("it is created");

    let since = fixture.collect(&BTreeMap::new(), 1).await;
    assert_eq!(since.len(), 1, "{since:?}");
    let since = fixture.collect(&since, 15).await;
    assert_eq!(fixture.left().await, names(&["all", "foreign", "mounted", "old"]));
    fixture.collect(&since, 16).await;
    assert_eq!(fixture.left().await, names(&["all", "foreign", "mounted"]));
}

#[tokio::test] // proves DECLARE-31
async fn a_secret_that_was_made_anew_is_another_one() {
    let fixture = Fixture::new().await;
    fixture.secret("old", "ours").await;
    let since = fixture.collect(&BTreeMap::new(), 1).await;
    let first = since.keys().next().expect("one").clone();
    fixture.secrets().delete("logs-old-config", &DeleteParams::default()).await.expect("deleted");
    fixture.secret("old", "ours").await;

    // As if it were found before, and deleted now.
    let secrets = fixture.api.objects::<Secret>("default");
    let refused = secrets.delete("logs-old-config", only(Some(&first), None)).await;
    assert!(refused.expect_err("another uid").is_conflict());
    let since = fixture.collect(&since, 20).await;
    assert!(!since.contains_key(&first), "{since:?}");
    assert_eq!(fixture.left().await, names(&["old"]));
}

/// Our config Secret of the set `all`, with this in it.
fn config(text: &str) -> Object {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "logs-all-config", "namespace": "default",
            "ownerReferences": [{
                "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster", "name": "logs",
                "uid": "ours", "controller": true,
            }],
        },
        "stringData": {"opensearch.yml": text},
    });
    Object { kind: Kind::Secret, name: "logs-all-config".into(), body }
}

#[tokio::test] // proves RESTART-119
async fn what_another_replica_has_written_since_is_not_written_over() {
    let fixture = Fixture::new().await;
    let make = async |text: &str, lease: &Lease| {
        let objects = [config(text)];
        Applied::default().make((&fixture.api, lease), &fixture.cluster, &objects).await
    };
    let held = Lease::not_needed();
    assert!(matches!(make("a: 1", &held).await, Ok(true)));

    // Ours is under way while the other one is written.
    fixture.server.inject(Fault::new(How::Hold).verb("patch"));
    let other = async {
        fixture.server.until_faultless().await;
        let mut secret = fixture.secrets().get("logs-all-config").await.expect("it is there");
        secret.metadata.labels = Some(BTreeMap::from([("newer".into(), "yes".into())]));
        let name = "logs-all-config";
        let written = fixture.secrets().replace(name, &PostParams::default(), &secret).await;
        written.expect("it is taken");
        fixture.server.release();
    };
    let (made, ()) = tokio::join!(make("a: 2", &held), other);
    let Err(Verdict::Failed(failure)) = made else { panic!("{made:?}") };
    assert!(failure.is_conflict(), "{failure}");
    assert!(matches!(make("a: 2", &held).await, Ok(true)));

    let lost = make("a: 3", &Lease::lost_for_test()).await;
    assert!(matches!(lost, Err(Verdict::Failed(Failure::LeaseLost))), "{lost:?}");
}
