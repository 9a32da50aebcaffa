//! Events: each is told once, and again only after it has ceased to be told.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::{Event as Told, EventType, Recorder, Reporter};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::apiserver::{Apiserver, MANAGER};
use super::pods::Pods;
use crate::cluster::SearchCluster;
use stayput_restart::{Action, Event, Plan};

/// The longest note an event may have, in bytes.
const LONGEST: usize = 1024;

/// What was told of one SearchCluster, and what is on its way to be.
#[derive(Debug)]
pub(super) struct Teller {
    api: Apiserver,
    reporter: Reporter,
    last: BTreeSet<Event>,
    under_way: JoinSet<()>,
}

impl Teller {
    /// `instance` names this process among its replicas.
    pub(super) fn new(api: Apiserver, instance: &str) -> Self {
        let instance = Some(instance.to_owned()).filter(|name| !name.is_empty());
        let reporter = Reporter { controller: MANAGER.into(), instance };
        Self { api, reporter, last: BTreeSet::new(), under_way: JoinSet::new() }
    }

    /// Tells what is new in the plan. Nobody waits for it: events are for people.
    pub(super) fn tell(&mut self, plan: &Plan, cluster: &SearchCluster, pods: &Pods) {
        let events: BTreeSet<Event> = plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::RecordEvent(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        while self.under_way.try_join_next().is_some() {}
        for event in events.difference(&self.last) {
            tracing::info!(
                reason = event.reason.as_str(),
                pod.uid = event.pod.as_deref().unwrap_or_default(),
                "{}",
                event.message
            );
            let regarding = regarding(event, cluster, pods);
            let told = told(event);
            // One for each: with a recorder that remembers, the second message of a reason would
            // only be counted, and its words lost.
            let recorder = Recorder::new(self.api.client(), self.reporter.clone());
            let tell = async move {
                if let Err(error) = recorder.publish(&told, &regarding).await {
                    tracing::warn!("an event could not be told: {error}");
                }
            };
            self.under_way.spawn(tell.in_current_span());
        }
        self.last = events;
    }

    /// Waits until everything is told.
    pub(super) async fn finish(mut self) {
        while self.under_way.join_next().await.is_some() {}
    }
}

fn told(event: &Event) -> Told {
    let mut note = event.message.clone();
    if note.len() > LONGEST {
        let end = (0..=LONGEST - 4).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
        note.truncate(end);
        note.push('…');
    }
    Told {
        type_: if event.reason.is_warning() { EventType::Warning } else { EventType::Normal },
        reason: event.reason.as_str().to_owned(),
        note: Some(note),
        action: "Restart".to_owned(),
        secondary: None,
    }
}

/// A pod that is gone has no place for events: then it is told of the SearchCluster.
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
