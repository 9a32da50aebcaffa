//! The watch of one SearchCluster's pods.

use futures_util::future::pending;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::core::Selector;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::task::yield_now;

use super::apiserver::{Apiserver, watch_config, watch_error};
use super::pods::{Pods, Reading};
use crate::cluster::{Checked, SearchCluster};

/// So often in a row the connection was polled and brought nothing, before [`PodWatch::drain`] ends.
const EMPTY_POLLS: u32 = 4;

type PodEvents = BoxStream<'static, watcher::Result<watcher::Event<Pod>>>;

/// The watch, which follows the spec.
pub(super) struct PodWatch {
    api: Apiserver,
    namespace: String,
    followed: Option<Followed>,
    /// The last error of the watch.
    error: Option<String>,
}

/// A watch that is set up, and the parts of the spec it was set up for.
struct Followed {
    selector: Selector,
    reading: Reading,
    port: u16,
    events: PodEvents,
}

impl PodWatch {
    pub(super) fn new(api: Apiserver, namespace: &str) -> Self {
        Self { api, namespace: namespace.to_owned(), followed: None, error: None }
    }

    /// Watches the pods that the spec selects. True if this is a new watch: then nothing that was
    /// known of the pods holds any more.
    pub(super) fn follow(&mut self, cluster: &SearchCluster, checked: &Checked) -> bool {
        let reading = Reading::of(&cluster.spec);
        let port = cluster.spec.engine.port;
        if self.followed.as_ref().is_some_and(|followed| {
            followed.selector == checked.pods
                && followed.reading == reading
                && followed.port == port
        }) {
            return false;
        }
        let api: Api<Pod> = Api::namespaced(self.api.client(), &self.namespace);
        let config = watch_config().labels_from(&checked.pods);
        let events = watcher::watcher(api, config).default_backoff().boxed();
        self.followed = Some(Followed { selector: checked.pods.clone(), reading, port, events });
        true
    }

    /// Why the pods cannot be listed, if the watch has reported an error.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Puts into `pods` what the watch has already received. The connection returns one piece at a
    /// time and continues to read only when it is polled: after a long reconcile many events are
    /// queued.
    pub(super) async fn drain(&mut self, pods: &mut Pods) {
        let Some(followed) = &mut self.followed else { return };
        let mut empty_polls = 0;
        while empty_polls < EMPTY_POLLS {
            match followed.events.next().now_or_never() {
                Some(Some(Ok(event))) => {
                    pods.apply(event, &followed.reading);
                    empty_polls = 0;
                }
                Some(Some(Err(error))) => {
                    self.note_error(&error, pods);
                    return;
                }
                Some(None) => return,
                None => {
                    empty_polls += 1;
                    yield_now().await;
                }
            }
        }
    }

    /// Puts into `pods` what the watch receives, and completes once a decision may depend on it, or
    /// once there is an error that the status should show.
    pub(super) async fn changed(&mut self, pods: &mut Pods) {
        loop {
            let Some(followed) = &mut self.followed else { return pending().await };
            let is_change = match followed.events.next().await {
                Some(Ok(event)) => pods.apply(event, &followed.reading),
                Some(Err(error)) => self.note_error(&error, pods),
                None => return pending().await,
            };
            if is_change {
                return;
            }
        }
    }

    /// Logs an error of the watch. True if it is new and keeps the pods from being listed.
    fn note_error(&mut self, error: &watcher::Error, pods: &Pods) -> bool {
        let message = watch_error("pods", Some(&self.namespace), error);
        tracing::warn!("{message}");
        let is_new = !pods.is_complete() && self.error.as_ref() != Some(&message);
        self.error = Some(message);
        is_new
    }
}
