//! Kubernetes events: each is sent once, and again only after a plan without it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::{Event as KubeEvent, EventType, Recorder, Reporter};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::Instrument;

use super::apiserver::Apiserver;
use super::pods::Pods;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::names::reconciler;
use stayput_restart::{Action, Event, Plan};

/// Limit of the note of an event, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// Time limit of sending one event.
const SENDING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the end of a task waits for events that are being sent.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The events of one SearchCluster.
#[derive(Debug)]
pub(super) struct EventRecorder {
    api: Apiserver,
    reporter: Reporter,
    /// The events of the last plan.
    last: BTreeSet<Event>,
    sending: JoinSet<()>,
}

impl EventRecorder {
    /// `instance` is the name of this process among its replicas.
    pub(super) fn new(api: Apiserver, instance: &str) -> Self {
        let reporter = reporter(instance);
        Self { api, reporter, last: BTreeSet::new(), sending: JoinSet::new() }
    }

    /// Logs and sends the events that the last plan did not have. They are for people: no reconcile waits for
    /// them.
    pub(super) fn record(&mut self, plan: &Plan, cluster: &SearchCluster, pods: &Pods) {
        let events: BTreeSet<Event> = plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::RecordEvent(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        while self.sending.try_join_next().is_some() {}
        let last = std::mem::replace(&mut self.last, events.clone());
        for event in events.difference(&last) {
            self.send(event, cluster, pods);
        }
    }

    /// Logs one event, and sends it unless an annotation of its pod shows it.
    pub(super) fn send(&mut self, event: &Event, cluster: &SearchCluster, pods: &Pods) {
        tracing::info!(
            reason = event.reason.as_str(),
            pod.uid = event.pod.as_deref().unwrap_or_default(),
            "{}",
            event.message
        );
        if event.reason.is_on_the_pod() {
            return;
        }
        let regarding = regarding(event, cluster, pods);
        let event = kube_event(event);
        let send = publish(self.api.clone(), self.reporter.clone(), event, regarding);
        self.sending.spawn(send.in_current_span());
    }

    /// Waits for a short time until all events are sent; drops the others.
    pub(super) async fn finish(mut self) {
        let sent = async { while self.sending.join_next().await.is_some() {} };
        if timeout(END_TIMEOUT, sent).await.is_err() {
            tracing::warn!("dropped the last events: the apiserver is too slow");
        }
    }
}

/// Sends one event; only logs a failure.
pub(super) async fn publish(
    api: Apiserver,
    reporter: Reporter,
    event: KubeEvent,
    regarding: ObjectReference,
) {
    // A new recorder for each event: one with a cache would only count the second event of a reason, and drop
    // its message.
    let recorder = Recorder::new(api.client(), reporter);
    match timeout(SENDING_TIMEOUT, recorder.publish(&event, &regarding)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("cannot send an event: {error}"),
        Err(_) => tracing::warn!("cannot send an event: no answer within {SENDING_TIMEOUT:?}"),
    }
}

/// This process as the reporter of events.
pub(super) fn reporter(instance: &str) -> Reporter {
    let instance = Some(instance.to_owned()).filter(|name| !name.is_empty());
    Reporter { controller: reconciler::NAME.into(), instance }
}

fn kube_event(event: &Event) -> KubeEvent {
    let mut note = event.message.clone();
    if note.len() > MAX_NOTE_BYTES {
        let end = (0..=MAX_NOTE_BYTES - 4).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
        note.truncate(end);
        note.push('…');
    }
    KubeEvent {
        type_: if event.reason.is_warning() { EventType::Warning } else { EventType::Normal },
        reason: event.reason.as_str().to_owned(),
        note: Some(note),
        action: "Restart".to_owned(),
        secondary: None,
    }
}

/// The object of an event: its pod, or the SearchCluster if the pod is gone and cannot have events.
fn regarding(event: &Event, cluster: &SearchCluster, pods: &Pods) -> ObjectReference {
    let pod = event.pod.as_deref().and_then(|uid| pods.by_uid(uid));
    match pod {
        Some(pod) => ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            namespace: Some(pod.namespace.clone()),
            name: Some(pod.name.clone()),
            uid: Some(pod.uid.clone()),
            ..ObjectReference::default()
        },
        None => cluster.object_ref(&()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use stayput_restart::Reason;
    use stayput_standin::apiserver::{ApiServer, Fault, How};

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test(start_paused = true)] // proves RESTART-36
    async fn an_event_that_is_never_taken_keeps_no_task_from_its_end() {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        server.inject(Fault::new(How::Hang).resource("events").times(u32::MAX));
        let api = Apiserver::new(server.client(), Arc::new(Metrics::new()));
        let cluster: SearchCluster = serde_json::from_value(json!({
            "metadata": {"name": "logs", "namespace": "default"}, "spec": {"engine": {}},
        }))
        .expect("a SearchCluster");
        let message = "logs-0 is taken away".to_owned();
        let event = Event { pod: None, reason: Reason::NodeRemoved, message };
        let mut recorder = EventRecorder::new(api, "test");
        recorder.send(&event, &cluster, &Pods::default());
        // It is given up, and the next one has its own time.
        let given_up = timeout(SENDING_TIMEOUT * 2, recorder.sending.join_next()).await;
        assert!(given_up.is_ok_and(|over| over.is_some()));
        recorder.send(&event, &cluster, &Pods::default());
        let ended = timeout(END_TIMEOUT * 2 - Duration::from_secs(1), recorder.finish()).await;
        assert!(ended.is_ok());
    }
}
