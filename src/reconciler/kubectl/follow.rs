//! Follows a restart by watching the SearchCluster and its pods.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;

use super::apiserver;
use super::failure::Failure;
use super::progress::{Line, Progress, Stage};
use super::view::View;
use crate::cluster::SearchCluster;
use stayput_restart::{HistoryEntry, Time};

/// How a followed restart ended.
pub type Ended = HistoryEntry;

/// Follows the restart with this id, or else the one under way, or else the next, to its end; `tell`
/// is called with each change.
///
/// # Errors
/// When it cannot be watched, the SearchCluster is deleted, the restart will never begin, or `tell`
/// fails.
pub async fn follow(
    client: &Client,
    cluster: &SearchCluster,
    id: Option<String>,
    mut tell: impl FnMut(&Line) -> std::io::Result<()>,
) -> Result<Ended, Failure> {
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), &namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut clusters = pin!(watch(clusters, only).default_backoff());
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let selected = watcher::Config::default().labels_from(&apiserver::selector(cluster)?);
    let mut pods = pin!(watch(pods, selected).default_backoff());

    let mut known = Known { cluster: Some(cluster.clone()), ..Known::default() };
    let mut progress = Progress::new(id);
    loop {
        let mut due = None;
        if known.pods_listed {
            let Some(cluster) = &known.cluster else {
                return Err(Failure::Failed(format!("SearchCluster {name} was deleted")));
            };
            let view = View::of(cluster, known.pods.values());
            let (lines, stage) = progress.look(&view, now());
            for line in &lines {
                tell(line)?;
            }
            match stage {
                Stage::Over(entry) => return Ok(entry),
                Stage::Never(message) => return Err(Failure::Failed(message)),
                Stage::Open => due = progress.due_in(now()),
            }
        }
        let wait = sleep(due.map_or(Duration::MAX, Duration::from_millis));
        tokio::select! {
            event = clusters.next() => known.hear_cluster(event)?,
            event = pods.next() => known.hear_pod(event)?,
            () = wait => {}
        }
    }
}

/// The moment.
pub(super) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// What the watches have told.
#[derive(Default)]
struct Known {
    cluster: Option<SearchCluster>,
    /// A new list of the SearchCluster under way has brought it.
    relisted: bool,
    pods: BTreeMap<String, Pod>,
    listing: BTreeMap<String, Pod>,
    pods_listed: bool,
}

impl Known {
    fn hear_cluster(
        &mut self,
        event: Option<watcher::Result<Event<SearchCluster>>>,
    ) -> Result<(), Failure> {
        match understood("watch searchclusters.stayput.dev", event)? {
            Some(Event::Apply(cluster)) => self.cluster = Some(cluster),
            Some(Event::InitApply(cluster)) => {
                self.relisted = true;
                self.cluster = Some(cluster);
            }
            Some(Event::Delete(_)) => self.cluster = None,
            Some(Event::Init) => self.relisted = false,
            Some(Event::InitDone) if !self.relisted => self.cluster = None,
            Some(Event::InitDone) | None => {}
        }
        Ok(())
    }

    fn hear_pod(&mut self, event: Option<watcher::Result<Event<Pod>>>) -> Result<(), Failure> {
        match understood("watch pods", event)? {
            Some(Event::Apply(pod)) => {
                self.pods.insert(pod.name_any(), pod);
            }
            Some(Event::Delete(pod)) => {
                self.pods.remove(&pod.name_any());
            }
            Some(Event::Init) => self.listing.clear(),
            Some(Event::InitApply(pod)) => {
                self.listing.insert(pod.name_any(), pod);
            }
            Some(Event::InitDone) => {
                self.pods = std::mem::take(&mut self.listing);
                self.pods_listed = true;
            }
            None => {}
        }
        Ok(())
    }
}

/// An event; nothing if the watch broke off and is tried again; an error if trying again is of no
/// use.
fn understood<T>(
    what: &str,
    event: Option<watcher::Result<Event<T>>>,
) -> Result<Option<Event<T>>, Failure> {
    match event {
        Some(Ok(event)) => Ok(Some(event)),
        Some(Err(
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error),
        )) if is_final(&error) => Err(apiserver::explain(what, &error)),
        Some(Err(_)) => Ok(None),
        None => Err(Failure::NotReachable("the watch has ended".into())),
    }
}

/// Who may not, may not in a moment either.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403, 404].contains(&status.code))
}
