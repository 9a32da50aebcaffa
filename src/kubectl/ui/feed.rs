//! Follows a SearchCluster and its pods: a page for each change.
//!
//! Two watches and, because a watch that hangs looks like one without changes, a check of the
//! SearchCluster itself from time to time. After an error in one of them, everything is read anew; if
//! that fails, the page says so and since when. Each check also reads the Lease of the reconciler.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::runtime::watcher::watcher;
use kube::{Api, Client};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::read_limits::watch_config;
use tokio::sync::watch::{self, Sender};
use tokio::time::{Instant, interval_at, sleep, timeout};

use crate::apiserver::{ApiError, Apiserver};
use crate::format::now;
use crate::html::Page;
use crate::leader::Reconciler;
use crate::session::Session;
use crate::view::ClusterView;
use crate::view::live::{PageModel, Zones, zone};
use crate::watch::Objects;
use crate::{apiserver, selection};

/// Intervals and timeouts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Interval of the checks.
    pub(crate) check: Duration,
    /// Timeout of an answer.
    pub(crate) answer: Duration,
    /// Delay before everything is read anew.
    pub(crate) retry: Duration,
}

const PACE: Pace = Pace {
    check: Duration::from_secs(10),
    answer: Duration::from_secs(10),
    retry: Duration::from_secs(1),
};

/// A page, and its number: a browser that has this one needs nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    pub(crate) page: Arc<Page>,
}

/// The followed SearchCluster.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) pace: Pace,
}

/// Everything that was read about it.
pub(crate) struct ClusterRead {
    cluster: SearchCluster,
    pods: Vec<Pod>,
    zones: Zones,
    reconciler: Reconciler,
}

impl ClusterRead {
    pub(crate) fn model(&self, before: PageModel) -> PageModel {
        let before = before.with_reconciler(self.reconciler.clone());
        before.read(&self.cluster, self.pods.iter(), &self.zones, now())
    }
}

impl Subject {
    /// Reads everything, if the SearchCluster exists.
    pub(crate) async fn read(&self) -> Result<Option<ClusterRead>, ApiError> {
        let Some(cluster) = self.cluster().await? else { return Ok(None) };
        let pods = selection::pods(&self.client, &cluster).await?;
        let (zones, reconciler) = tokio::join!(self.zones(), Box::pin(self.reconciler()));
        Ok(Some(ClusterRead { cluster, pods, zones, reconciler }))
    }

    async fn cluster(&self) -> Result<Option<SearchCluster>, ApiError> {
        let clusters = Apiserver::for_kubectl(self.client.clone()).objects(&self.namespace);
        let found = clusters.find(&self.name).await?;
        Ok(found.map(SearchCluster::completed))
    }

    /// State of the reconciler, as far as the apiserver answers.
    async fn reconciler(&self) -> Reconciler {
        timeout(self.pace.answer, Reconciler::seen(&self.client)).await.unwrap_or_default()
    }

    /// The zones of the machines; empty if they may not be listed, which few may.
    async fn zones(&self) -> Zones {
        let machines = Api::<Node>::all(self.client.clone());
        let parameters = ListParams::default();
        let machines = timeout(self.pace.answer, machines.list_metadata(&parameters));
        let machines = machines.await.ok().and_then(Result::ok);
        let machines = machines.into_iter().flatten();
        machines
            .filter_map(|one| Some((one.metadata.name?, zone(one.metadata.labels.as_ref())?)))
            .collect()
    }

    /// Follows the SearchCluster until nobody can get the pages any more.
    pub(crate) async fn follow(self, first: ClusterRead, model: PageModel, out: Sender<Seen>) {
        let mut model = model;
        let mut found = Some(first);
        loop {
            if let Some(found) = found.take() {
                model = Box::pin(self.watch(&found, model, &out)).await;
            }
            if out.is_closed() {
                return;
            }
            sleep(self.pace.retry).await;
            model = match self.in_time(self.read()).await {
                Ok(Some(read)) => {
                    let model = read.model(model);
                    found = Some(read);
                    model
                }
                Ok(None) => model.deleted(now()),
                Err(why) => model.lost(why),
            };
            publish(&out, &model);
        }
    }

    /// Watches the SearchCluster, from the state that was read, until it must be read anew.
    async fn watch(
        &self,
        found: &ClusterRead,
        mut model: PageModel,
        out: &Sender<Seen>,
    ) -> PageModel {
        let Ok(selector) = apiserver::selector(&found.cluster) else {
            sleep(self.pace.check).await;
            return model;
        };
        let clusters: Api<SearchCluster> = Api::namespaced(self.client.clone(), &self.namespace);
        let by_name = watch_config().fields(&format!("metadata.name={}", self.name));
        let mut clusters = pin!(watcher(clusters, by_name));
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let selected = watch_config().labels_from(&selector);
        let mut pods = pin!(watcher(pods, selected));
        let mut checks = interval_at(Instant::now() + self.pace.check, self.pace.check);
        let mut objects = Objects::new(found.cluster.clone());
        loop {
            tokio::select! {
                () = out.closed() => return model,
                event = clusters.next() => match event {
                    Some(Ok(event)) => objects.apply_cluster(&event),
                    Some(Err(_)) | None => return model,
                },
                event = pods.next() => match event {
                    Some(Ok(event)) => objects.apply_pod(&event),
                    Some(Err(_)) | None => return model,
                },
                _ = checks.tick() => match self.in_time(self.cluster()).await {
                    Ok(checked) if is_version_of(checked.as_ref(), &objects) => {
                        model = model.with_reconciler(Box::pin(self.reconciler()).await);
                        publish(out, &model);
                        continue;
                    }
                    Ok(_) => return model,
                    Err(why) => {
                        model = model.lost(why);
                        publish(out, &model);
                        return model;
                    }
                },
            }
            // What has arrived already belongs to the same page.
            while let Some(event) = clusters.next().now_or_never() {
                let Some(Ok(event)) = event else { return model };
                objects.apply_cluster(&event);
            }
            while let Some(event) = pods.next().now_or_never() {
                let Some(Ok(event)) = event else { return model };
                objects.apply_pod(&event);
            }
            let Some(pods) = objects.pods() else { continue };
            // Gone, or it selects other pods.
            let Some(cluster) = objects.cluster() else { return model };
            let cluster = Arc::unwrap_or_clone(cluster).completed();
            if apiserver::selector(&cluster).ok().as_ref() != Some(&selector) {
                return model;
            }
            model = model.read(&cluster, pods.iter().map(Arc::as_ref), &found.zones, now());
            publish(out, &model);
        }
    }

    /// The answer, or why there is none.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, String> {
        let limit = self.pace.answer;
        let late = |_| format!("the apiserver did not answer within {} s", limit.as_secs());
        timeout(limit, answer).await.map_err(late)?.map_err(|error| error.to_string())
    }
}

/// True if the watch has delivered the version that was read.
fn is_version_of(checked: Option<&SearchCluster>, objects: &Objects) -> bool {
    let version = |cluster: &SearchCluster| cluster.metadata.resource_version.clone();
    checked.map(version) == objects.cluster().as_deref().map(version)
}

/// Publishes the page, unless it is the same.
fn publish(out: &Sender<Seen>, model: &PageModel) {
    let page = Page::new(model);
    out.send_if_modified(|seen| {
        let is_new = *seen.page != page;
        if is_new {
            *seen = Seen { version: seen.version + 1, page: Arc::new(page) };
        }
        is_new
    });
}

pub(crate) struct Clusters {
    session: Session,
    /// Name of the cluster on the command line.
    first: Option<String>,
    followed: Mutex<BTreeMap<String, watch::Receiver<Seen>>>,
}

impl Clusters {
    pub(crate) fn new(session: Session, first: Option<String>) -> Self {
        Self { session, first, followed: Mutex::default() }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.session.namespace
    }

    /// Name of the cluster to show first, if there is one.
    pub(crate) async fn first(&self) -> Result<Option<String>, ApiError> {
        if self.first.is_some() {
            return Ok(self.first.clone());
        }
        let mut all = self.list().await?;
        Ok(all.pop().filter(|_| all.is_empty()).map(|only| only.name))
    }

    /// All clusters, without their pods.
    pub(crate) async fn list(&self) -> Result<Vec<ClusterView>, ApiError> {
        Ok(selection::without_pods(&apiserver::clusters(&self.session).await?))
    }

    /// The pages of one SearchCluster, if it exists.
    pub(crate) async fn pages(
        &self,
        name: &str,
    ) -> Result<Option<watch::Receiver<Seen>>, ApiError> {
        if let Some(known) = self.followed().get(name) {
            return Ok(Some(known.clone()));
        }
        let subject = Subject {
            client: self.session.client.clone(),
            namespace: self.session.namespace.clone(),
            name: name.to_owned(),
            pace: PACE,
        };
        let Some(found) = subject.read().await? else { return Ok(None) };
        let model = found.model(PageModel::default());
        let page = Arc::new(Page::new(&model));
        let (sender, receiver) = watch::channel(Seen { version: 1, page });
        let mut followed = self.followed();
        // Two may have asked at the same time.
        if let Some(known) = followed.get(name) {
            return Ok(Some(known.clone()));
        }
        followed.insert(name.to_owned(), receiver.clone());
        tokio::spawn(subject.follow(found, model, sender));
        Ok(Some(receiver))
    }

    fn followed(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, watch::Receiver<Seen>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
