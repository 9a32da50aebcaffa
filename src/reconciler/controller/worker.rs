//! One SearchCluster's task: look, plan, act, wait, and so on; never two plans at once.

mod charter;
mod chronicle;
mod pace;
mod pass;
mod polls;
mod status;
mod stops;
mod view;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::core::Selector;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};

use super::apiserver::Apiserver;
use super::health::Health;
use super::metrics::Metrics;
use super::observe::Eyes;
use super::publish::Publisher;
use super::settings::Settings;
use super::told::Teller;
use super::window::Window;
use crate::cluster::{Checked, SearchCluster};

use charter::Charter;
use chronicle::Chronicle;
use pace::Pace;
use polls::Polls;

/// Namespace and name.
pub(super) type Key = (String, String);
/// Every SearchCluster, as the watch shows them.
pub(super) type Clusters = BTreeMap<Key, Arc<SearchCluster>>;

type PodEvents = BoxStream<'static, watcher::Result<watcher::Event<Pod>>>;

/// The task of one SearchCluster.
pub(super) struct Worker {
    key: Key,
    api: Apiserver,
    metrics: Arc<Metrics>,
    clusters: watch::Receiver<Arc<Clusters>>,
    /// The newest state known, of the watch's and of our own writes' answers.
    cluster: Option<Arc<SearchCluster>>,
    eyes: Eyes,
    events: Option<Followed>,
    polls: Polls,
    pace: Pace,
    publisher: Publisher,
    teller: Teller,
    chronicle: Chronicle,
    charter: Charter,
    /// Why the pods cannot be listed.
    blind: Option<String>,
    health: Arc<Health>,
    window: Window,
    /// Id of the restart that the flushes remembered were done in.
    flushed_for: Option<String>,
    /// What every line of the log carries.
    span: Span,
}

/// The watch of the pods, and what it was set up for.
struct Followed {
    selector: Selector,
    label: Option<String>,
    port: u16,
    events: PodEvents,
}

impl Worker {
    pub(super) fn new(
        key: Key,
        api: Apiserver,
        metrics: Arc<Metrics>,
        clusters: watch::Receiver<Arc<Clusters>>,
        settings: &Settings,
        health: Arc<Health>,
        window: Window,
    ) -> Self {
        let account = settings.account.clone();
        let eyes = Eyes::new(api.clone(), Arc::clone(&metrics), account, &key.0, &key.1);
        let name = format!("{}/{}", key.0, key.1);
        // Of the highest level, so that it is there whatever is logged.
        let span = tracing::error_span!("cluster", cluster = name, restart = "");
        Self {
            key,
            span,
            teller: Teller::new(api.clone(), &settings.name),
            api,
            metrics,
            clusters,
            cluster: None,
            eyes,
            events: None,
            polls: Polls::default(),
            pace: Pace::default(),
            publisher: Publisher::default(),
            chronicle: Chronicle::default(),
            charter: Charter::default(),
            blind: None,
            health,
            window,
            flushed_for: None,
        }
    }

    /// Runs until the SearchCluster is gone or `stop` says so; a pass in hand is finished.
    pub(super) async fn run(self, stop: watch::Receiver<bool>) {
        let span = self.span.clone();
        Box::pin(self.work(stop)).instrument(span).await;
    }

    async fn work(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            self.health.begin(&self.name());
            let next = Box::pin(self.pass()).await;
            self.health.end(&self.name());
            let Some(next) = next else { break };
            let calm = Instant::now() + self.pace.calm(next.is_under_way());
            let wait = async {
                self.wait(next).await;
                sleep_until(calm).await;
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = wait => {}
            }
        }
        self.metrics.show(&self.name(), None);
        self.teller.finish().await;
    }

    /// `namespace/name`.
    fn name(&self) -> String {
        format!("{}/{}", self.key.0, self.key.1)
    }

    /// The newest state of the SearchCluster; none if it is gone.
    fn newest(&mut self) -> Option<Arc<SearchCluster>> {
        let watched = self.clusters.borrow_and_update().get(&self.key).cloned()?;
        let newer = match &self.cluster {
            Some(known) if known.uid() == watched.uid() => version(known) < version(&watched),
            Some(_) | None => true,
        };
        if newer {
            self.cluster = Some(watched);
        }
        self.cluster.clone()
    }

    /// Takes in a newer state than the watch's; with the spec that is worked by.
    fn take(&mut self, cluster: SearchCluster) -> Arc<SearchCluster> {
        let cluster = Arc::new(cluster);
        self.cluster = Some(Arc::clone(&cluster));
        let status = cluster.status.as_ref();
        let restart = status.and_then(|status| status.ledger.restart.as_ref());
        self.span.record("restart", restart.map_or("", |restart| restart.request.id.as_str()));
        self.charter.apply(cluster)
    }

    /// The other SearchClusters of the namespace: name and selector.
    fn others(&self) -> Vec<(String, Selector)> {
        let clusters = self.clusters.borrow();
        let others = clusters.iter().filter(|(key, _)| **key != self.key && key.0 == self.key.0);
        let selector =
            |cluster: &SearchCluster| Selector::try_from(cluster.spec.pods.selector.clone()).ok();
        others.filter_map(|(key, other)| Some((key.1.clone(), selector(other)?))).collect()
    }

    /// Watches the pods that the spec selects.
    fn follow(&mut self, cluster: &SearchCluster, checked: &Checked) {
        let label = cluster.spec.pods.node_name_label.clone();
        let port = cluster.spec.engine.port;
        if self.events.as_ref().is_some_and(|followed| {
            followed.selector == checked.pods && followed.label == label && followed.port == port
        }) {
            return;
        }
        let api: Api<Pod> = Api::namespaced(self.api.client(), &self.key.0);
        let config = watcher::Config::default().labels_from(&checked.pods);
        let events = watcher::watcher(api, config).default_backoff().boxed();
        self.eyes.blink();
        self.events = Some(Followed { selector: checked.pods.clone(), label, port, events });
    }
}

fn version(cluster: &SearchCluster) -> u64 {
    cluster.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}
