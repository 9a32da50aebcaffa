//! Kubernetes events: each is sent once, and again only after a plan without it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::{Event as KubeEvent, EventType, Recorder, Reporter};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::apiserver::{Apiserver, FIELD_MANAGER};
use super::pods::Pods;
use crate::cluster::SearchCluster;
use stayput_restart::{Action, Event, Plan};

/// The longest note an event may have, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// The events of one SearchCluster.
#[derive(Debug)]
pub(super) struct EventRecorder {
    api: Apiserver,
    reporter: Reporter,
    /// Those of the last plan.
    last: BTreeSet<Event>,
    sending: JoinSet<()>,
}

impl EventRecorder {
    /// `instance` is the name of this process among its replicas.
    pub(super) fn new(api: Apiserver, instance: &str) -> Self {
        let reporter = reporter(instance);
        Self { api, reporter, last: BTreeSet::new(), sending: JoinSet::new() }
    }

    /// Logs and sends the events that the last plan did not have. They are for people: no reconcile
    /// waits until they are sent.
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

    /// Logs one event, and sends it unless its pod shows the same.
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
        // A recorder for each: one that remembers would only count the second event of a reason, and
        // drop its message.
        let recorder = Recorder::new(self.api.client(), self.reporter.clone());
        let send = async move {
            if let Err(error) = recorder.publish(&event, &regarding).await {
                tracing::warn!("cannot send an event: {error}");
            }
        };
        self.sending.spawn(send.in_current_span());
    }

    /// Waits until everything is sent.
    pub(super) async fn finish(mut self) {
        while self.sending.join_next().await.is_some() {}
    }
}

/// This process, as events name it.
pub(super) fn reporter(instance: &str) -> Reporter {
    let instance = Some(instance.to_owned()).filter(|name| !name.is_empty());
    Reporter { controller: FIELD_MANAGER.into(), instance }
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

/// A pod that is gone cannot have events: then they go to the SearchCluster.
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
