//! A watch that works, fails and works again, with a stand-in apiserver.

use std::sync::Arc;

use kube::api::PostParams;
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_standin::apiserver::{ApiServer, Fault, How};
use stayput_standin::harness::paused_clock;
use tokio::time::timeout;

use super::*;
use crate::metrics::Metrics;

struct Fixture {
    server: ApiServer,
    watch: PodWatch,
    pods: Pods,
}

impl Fixture {
    /// One pod that is known.
    async fn new() -> Self {
        paused_clock::in_steps();
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
        let cluster: SearchCluster = serde_json::from_value(json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": { "name": "logs" },
            "spec": {
                "pods": { "selector": { "matchLabels": { "app": "logs" } } },
                "engine": { "scheme": "http" },
                "manager": { "caSecret": "ca", "auth": { "jwtKeySecret": "key" } },
            },
        }))
        .expect("a SearchCluster");
        let spec = EffectiveSpec::resolve(&cluster, None, None).expect("it is valid");
        let mut watch = PodWatch::new(api, "default");
        assert!(watch.follow(&spec));
        let mut fixture = Self { server, watch, pods: Pods::default() };
        fixture.create("logs-0").await;
        fixture.change().await;
        assert!(fixture.pods.is_complete());
        fixture
    }

    async fn create(&self, name: &str) {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "logs"}},
            "spec": {"containers": [{"name": "search", "image": "search"}]},
        }));
        let pods: Api<Pod> = Api::namespaced(self.server.client(), "default");
        let pod = pods.create(&PostParams::default(), &pod.expect("a pod")).await;
        pod.expect("it is created");
    }

    async fn change(&mut self) {
        let changed = self.watch.changed(&mut self.pods);
        timeout(OLD_AFTER * 3, changed).await.expect("a change");
    }

    fn fail(&self, verb: &str, times: u32) {
        self.server.inject(Fault::new(How::Refuse(500)).verb(verb).resource("pods").times(times));
    }
}

#[tokio::test(start_paused = true)] // proves RESTART-19
async fn pods_that_are_not_seen_any_more_are_told_and_count_again_once_they_are_listed() {
    let mut fixture = Fixture::new().await;
    fixture.fail("watch", u32::MAX);
    fixture.fail("list", u32::MAX);
    fixture.server.cut_watches();
    fixture.change().await;
    let error = fixture.watch.old().expect("they are old").to_owned();
    assert!(error.contains("cannot watch the pods of namespace default"), "{error}");
    // That is told once.
    let changed = fixture.watch.changed(&mut fixture.pods);
    assert!(timeout(OLD_AFTER * 3, changed).await.is_err());
    fixture.server.clear_faults();
    fixture.change().await;
    assert_eq!((fixture.watch.old(), fixture.watch.error()), (None, None));
}

#[tokio::test(start_paused = true)] // proves RESTART-19
async fn a_watch_that_works_again_without_an_event_is_no_failure() {
    let mut fixture = Fixture::new().await;
    fixture.server.cut_watches();
    fixture.fail("watch", 2);
    let changed = fixture.watch.changed(&mut fixture.pods);
    assert!(timeout(OLD_AFTER * 3, changed).await.is_err(), "nothing has changed");
    assert_eq!((fixture.watch.old(), fixture.watch.error()), (None, None));
    fixture.create("logs-1").await;
    fixture.change().await;
    assert_eq!(fixture.pods.iter().count(), 2);
}
