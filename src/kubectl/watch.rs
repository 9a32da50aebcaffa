//! Watches a restart: the SearchCluster and its pods, until the restart ends.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use stayput_kube_access::apiserver::Call;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::read_limits::watch_config;
use stayput_restart::{HistoryEntry, Time};
use tokio::time::sleep;

use crate::apiserver::{self, ApiError, Apiserver};
use crate::error::Exit;
use crate::format::now;
use crate::leader::Reconciler;
use crate::progress::{Line, Reported, State, observe};
use crate::view::{ClusterView, Tone};

/// Watches the restart with this id, or else the one under way, or else the next, until it ends.
/// `print` gets each change, and `is_requested` says whether somebody has requested that restart.
///
/// # Errors
/// When it cannot be watched, the SearchCluster is deleted, the restart will never begin, or `print`
/// fails.
pub(crate) async fn watch(
    client: &Client,
    cluster: &SearchCluster,
    id: Option<String>,
    is_requested: &Cell<bool>,
    mut print: impl FnMut(&Line) -> io::Result<()>,
) -> Result<HistoryEntry, WatchError> {
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    let api = Apiserver::for_kubectl(client.clone());
    let clusters = api.objects::<SearchCluster>(&namespace);
    let watch_clusters = clusters.about("watch");
    let by_name = watch_config().fields(&format!("metadata.name={name}"));
    let mut clusters = pin!(watcher(clusters.api().clone(), by_name).default_backoff());
    let pods = api.objects::<Pod>(&namespace);
    let watch_pods = pods.about("watch");
    let selected = watch_config().labels_from(&apiserver::selector(cluster)?);
    let mut pods = pin!(watcher(pods.api().clone(), selected).default_backoff());

    let mut objects = Objects::new(cluster.clone());
    let mut reported = Reported::new(id);
    let mut looks = pin!(looks(client));
    let mut availability = Availability::default();
    loop {
        let mut next_check = None;
        if let Some(pods) = objects.pods() {
            let cluster =
                objects.cluster().ok_or_else(|| WatchError::ClusterDeleted(name.clone()))?;
            let view = ClusterView::from_objects(&cluster, pods.iter().map(Arc::as_ref));
            let observation = observe(reported, &view, now());
            reported = observation.reported;
            is_requested.set(reported.is_requested());
            for line in &observation.lines {
                print(line)?;
            }
            match observation.state {
                State::Ended(entry) => return Ok(entry),
                State::Lost(id) => {
                    return Err(WatchError::RestartLost { id, history: view.command("history") });
                }
                State::Open => next_check = reported.next_check_in(now()),
            }
        }
        let check = sleep(next_check.map_or(Duration::MAX, Duration::from_millis));
        let mut lines = Vec::new();
        tokio::select! {
            event = clusters.next() => {
                let (event, line) = availability.hear(heard(&watch_clusters, event)?, now());
                event.iter().for_each(|event| objects.apply_cluster(event));
                lines.extend(line);
            }
            event = pods.next() => {
                let (event, line) = availability.hear(heard(&watch_pods, event)?, now());
                event.iter().for_each(|event| objects.apply_pod(event));
                lines.extend(line);
            }
            Some(seen) = looks.next() => lines = availability.look(seen, now()),
            () = check => {}
        }
        for line in &lines {
            print(line)?;
        }
    }
}

/// Interval at which the Lease is read.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Warnings given so far, so that each is given once.
#[derive(Debug, Default)]
pub(crate) struct Availability {
    /// True if a watch could not begin, or a read of the Lease failed, and there was no answer since.
    is_broken: bool,
    is_absent: bool,
}

impl Availability {
    /// The event, if there is one, and a line to print.
    fn hear<T>(&mut self, heard: Heard<T>, now: Time) -> (Option<Event<T>>, Option<Line>) {
        match heard {
            Heard::Event(event) => (Some(event), self.answers(now)),
            Heard::Broken(None) => (None, None),
            Heard::Broken(Some(error)) => (None, self.breaks(&error, now)),
        }
    }

    fn breaks(&mut self, error: &ApiError, now: Time) -> Option<Line> {
        let was_broken = std::mem::replace(&mut self.is_broken, true);
        let trouble = || Line::trouble(now, Tone::Bad, format!("{error}; trying again"));
        (!was_broken).then(trouble)
    }

    fn answers(&mut self, now: Time) -> Option<Line> {
        let again = || "the apiserver answers again".to_owned();
        let was_broken = std::mem::take(&mut self.is_broken);
        was_broken.then(|| Line::trouble(now, Tone::Good, again()))
    }

    /// Lines to print after a read of the Lease. It also shows if the apiserver answers: a watch that
    /// hangs is broken only after its timeout, and one that has begun again has no event before
    /// something changes.
    pub(crate) fn look(&mut self, seen: Result<Reconciler, ApiError>, now: Time) -> Vec<Line> {
        let reconciler = match seen {
            Ok(reconciler) => reconciler,
            Err(error) => return self.breaks(&error, now).into_iter().collect(),
        };
        let mut lines: Vec<Line> = self.answers(now).into_iter().collect();
        let warning = reconciler.warning();
        let was_absent = std::mem::replace(&mut self.is_absent, warning.is_some());
        match warning {
            Some(warning) if !was_absent => {
                lines.push(Line::trouble(now, Tone::Bad, format!("reconciler: {warning}")));
            }
            None if was_absent => {
                let works = "reconciler: one works again".to_owned();
                lines.push(Line::trouble(now, Tone::Good, works));
            }
            Some(_) | None => {}
        }
        lines
    }
}

/// Reads the Lease, at once and then again and again.
pub(crate) fn looks(client: &Client) -> impl Stream<Item = Result<Reconciler, ApiError>> + '_ {
    unfold(Duration::ZERO, move |pause| async move {
        sleep(pause).await;
        Some((Reconciler::look(client).await, LOOK_INTERVAL))
    })
}

/// Objects that the watches have delivered so far.
pub(crate) struct Objects {
    clusters: Writer<SearchCluster>,
    pods: Writer<Pod>,
    pods_listed: bool,
}

impl Objects {
    /// The SearchCluster as it was read before it is watched.
    pub(crate) fn new(cluster: SearchCluster) -> Self {
        let mut clusters = Writer::default();
        clusters.apply_watcher_event(&Event::Apply(cluster));
        Self { clusters, pods: Writer::default(), pods_listed: false }
    }

    /// The pods, once they are listed.
    pub(crate) fn pods(&self) -> Option<Vec<Arc<Pod>>> {
        self.pods_listed.then(|| self.pods.as_reader().state())
    }

    /// The SearchCluster, unless it was deleted.
    pub(crate) fn cluster(&self) -> Option<Arc<SearchCluster>> {
        self.clusters.as_reader().state().pop()
    }

    pub(crate) fn apply_cluster(&mut self, event: &Event<SearchCluster>) {
        self.clusters.apply_watcher_event(event);
    }

    pub(crate) fn apply_pod(&mut self, event: &Event<Pod>) {
        self.pods.apply_watcher_event(event);
        self.pods_listed |= matches!(event, Event::InitDone);
    }
}

/// An item from a watch.
pub(crate) enum Heard<T> {
    Event(Event<T>),
    /// The watch broke and retries by itself; with the error, if it could not begin.
    Broken(Option<ApiError>),
}

/// Sorts an item of a watch; an error if a retry cannot help.
fn heard<T>(
    watch: &Call,
    event: Option<watcher::Result<Event<T>>>,
) -> Result<Heard<T>, WatchError> {
    let (error, has_begun) = match event {
        Some(Ok(event)) => return Ok(Heard::Event(event)),
        None => return Err(WatchError::StreamEnded),
        Some(Err(
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error),
        )) => (error, false),
        // Each watch ends at some time, and begins again.
        Some(Err(watcher::Error::WatchFailed(error))) => (error, true),
        Some(Err(_)) => return Ok(Heard::Broken(None)),
    };
    let error = ApiError::of(watch, error);
    if error.is_permanent() {
        return Err(error.into());
    }
    Ok(Heard::Broken((!has_begun).then_some(error)))
}

/// Why a restart is not watched to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the watch has ended: try again")]
    StreamEnded,
    #[error("SearchCluster {0} was deleted")]
    ClusterDeleted(String),
    #[error(
        "restart {id} is neither under way nor in the history, and will not begin: it was requested \
         before the reconciler first processed this SearchCluster, or the history no longer \
         contains it; see `{history}`"
    )]
    RestartLost { id: String, history: String },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl WatchError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Api(error) => error.into(),
            Self::StreamEnded => Exit::NotReachable,
            _ => Exit::Failed,
        }
    }
}
