//! The watch of one SearchCluster's pods.

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::future::pending;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::core::Selector;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::apiserver::{Apiserver, watch_error};
use super::effective_spec::EffectiveSpec;
use super::pods::{Pods, Reading};
use stayput_kube_access::read_limits::watch_config;

/// Number of empty polls of the connection in a row after which [`PodWatch::drain`] ends.
const EMPTY_POLLS: u32 = 4;

/// Time without an event since the first error after which the pods are listed anew: a watch that works again
/// does not say so.
const LISTED_AFTER: Duration = Duration::from_secs(30);
/// Time after the first error at which the state of the pods is too old for a stop.
const OLD_AFTER: Duration = Duration::from_secs(60);

type PodEvents = BoxStream<'static, watcher::Result<watcher::Event<Pod>>>;

/// The watch of the pods that the spec selects.
pub(super) struct PodWatch {
    api: Apiserver,
    namespace: String,
    followed: Option<Followed>,
    failing: Option<Failing>,
}

/// A watch that has reported an error, and nothing else since.
struct Failing {
    since: Instant,
    /// The last error.
    error: String,
    /// True once the pods are being listed anew.
    is_listed: bool,
    /// True once the watch has reported that the state of the pods is old.
    is_told: bool,
}

/// A running watch, and the parts of the spec that it depends on.
struct Followed {
    selector: Selector,
    reading: Reading,
    port: u16,
    events: PodEvents,
}

impl PodWatch {
    pub(super) fn new(api: Apiserver, namespace: &str) -> Self {
        Self { api, namespace: namespace.to_owned(), followed: None, failing: None }
    }

    /// Watches the pods that the spec selects. True for a new watch, which makes all earlier state of the
    /// pods invalid.
    pub(super) fn follow(&mut self, spec: &EffectiveSpec) -> bool {
        let EffectiveSpec { spec, checked, .. } = spec;
        let reading = Reading::of(spec);
        let port = spec.engine.port;
        if self.followed.as_ref().is_some_and(|followed| {
            followed.selector == checked.pods
                && followed.reading == reading
                && followed.port == port
        }) {
            return false;
        }
        let events = self.events(&checked.pods);
        self.followed = Some(Followed { selector: checked.pods.clone(), reading, port, events });
        self.failing = None;
        true
    }

    fn events(&self, selector: &Selector) -> PodEvents {
        let api: Api<Pod> = Api::namespaced(self.api.client(), &self.namespace);
        let config = watch_config().labels_from(selector);
        watcher::watcher(api, config).default_backoff().boxed()
    }

    /// The parts of pods that are read.
    pub(super) fn reading(&self) -> Option<&Reading> {
        self.followed.as_ref().map(|followed| &followed.reading)
    }

    /// The last error of the watch, if no event came since.
    pub(super) fn error(&self) -> Option<&str> {
        self.failing.as_ref().map(|failing| failing.error.as_str())
    }

    /// The last error of the watch, once the state of the pods is too old for a stop.
    pub(super) fn old(&self) -> Option<&str> {
        let failing = self.failing.as_ref()?;
        (failing.is_listed && failing.since.elapsed() >= OLD_AFTER)
            .then_some(failing.error.as_str())
    }

    /// Applies the events that the watch has already received to `pods`. The connection returns one piece at
    /// a time and continues to read only when it is polled: after a long reconcile many events are queued.
    pub(super) async fn drain(&mut self, pods: &mut Pods) {
        let mut empty_polls = 0;
        while empty_polls < EMPTY_POLLS {
            let Some(followed) = &mut self.followed else { return };
            match followed.events.next().now_or_never() {
                Some(Some(Ok(event))) => {
                    self.note_event(event, pods);
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

    /// Applies events of the watch to `pods`; completes once a decision may depend on one, or once there is
    /// an error that the status should show.
    pub(super) async fn changed(&mut self, pods: &mut Pods) {
        loop {
            let overdue = self.overdue();
            let Some(followed) = &mut self.followed else { return pending().await };
            let event = tokio::select! {
                biased;
                event = followed.events.next() => event,
                () = overdue => {
                    if self.is_old_now() {
                        return;
                    }
                    continue;
                }
            };
            let is_change = match event {
                Some(Ok(event)) => self.note_event(event, pods),
                Some(Err(error)) => self.note_error(&error, pods),
                None => return pending().await,
            };
            if is_change {
                return;
            }
        }
    }

    /// Completes when a failing watch has to be listed anew or reported as old.
    fn overdue(&self) -> impl Future<Output = ()> + use<> {
        let at =
            self.failing.as_ref().and_then(|failing| match (failing.is_listed, failing.is_told) {
                (false, _) => Some(failing.since + LISTED_AFTER),
                (true, false) => Some(failing.since + OLD_AFTER),
                (true, true) => None,
            });
        async move {
            match at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        }
    }

    /// Lists the pods anew if that is due. True if their state counts as old from now on.
    fn is_old_now(&mut self) -> bool {
        let Some(failing) = &mut self.failing else { return false };
        if failing.is_listed {
            let is_new = !failing.is_told && failing.since.elapsed() >= OLD_AFTER;
            failing.is_told |= is_new;
            return is_new;
        }
        failing.is_listed = true;
        // The error may have been noticed late: give the list its full time.
        let at_least = Instant::now().checked_sub(LISTED_AFTER).unwrap_or(failing.since);
        failing.since = failing.since.max(at_least);
        if let Some(selector) = self.followed.as_ref().map(|followed| followed.selector.clone()) {
            let events = self.events(&selector);
            if let Some(followed) = &mut self.followed {
                followed.events = events;
            }
        }
        false
    }

    /// Applies an event; true if a decision may depend on it.
    fn note_event(&mut self, event: watcher::Event<Pod>, pods: &mut Pods) -> bool {
        let Some(followed) = &self.followed else { return false };
        let mut is_change = false;
        // `Init` comes before the list, even if there is no answer.
        if !matches!(event, watcher::Event::Init) {
            is_change = self.old().is_some();
            self.failing = None;
        }
        pods.apply(event, &followed.reading) || is_change
    }

    /// Logs an error of the watch. True if it is new and keeps the pods from being listed.
    fn note_error(&mut self, error: &watcher::Error, pods: &Pods) -> bool {
        let message = watch_error("pods", Some(&self.namespace), error);
        tracing::warn!("{message}");
        let is_new = !pods.is_complete() && self.error() != Some(message.as_str());
        match &mut self.failing {
            Some(failing) => failing.error = message,
            None => {
                let since = Instant::now();
                let failing = Failing { since, error: message, is_listed: false, is_told: false };
                self.failing = Some(failing);
            }
        }
        is_new
    }
}
