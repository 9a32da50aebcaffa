//! Waits between two reconciles: until a watch, a manager (by a long poll), the owner of pods, its operator's object
//! or the engine reports a change, or the time is over.

mod engine_change;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, pending, select_all};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use stayput_api::Cursor;
use stayput_http::manager_client::ManagerClient;
use stayput_kube_access::operator_object::api_resource;
use stayput_kube_access::read_limits::WATCH_SECONDS;
use stayput_restart::Ledger;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::apiserver::Apiserver;
use crate::clusters::is_later;
use crate::concurrency::MAX_POLLS;
use crate::context::Context;
use crate::http_server::{SnapshotQueue, snapshot};
use crate::observe::operator_objects::Key;
use crate::observe::{Managers, wait_for_endpoints};
use crate::requeue::Next;
pub(super) use crate::wait::engine_change::Processes;
use crate::wait::engine_change::{Awaited, wait_for_change};

/// Waits for a change of the state in `next`, and answers requests for snapshots meanwhile.
pub(super) async fn wait(
    cx: &mut Context,
    polls: &mut ManagerPolls,
    snapshots: &mut SnapshotQueue,
    next: Next,
) {
    let until = Instant::now() + next.after;
    // Managers: long polls of those whose engine is about to change, also while the apiserver gives no
    // answer.
    polls.set(managers_to_poll(next.ledger(), &cx.observer.facts.managers));
    // Engine: its nodes or its health.
    let client = cx.observer.facts.engine.client().map(|(client, _)| client);
    let awaited = next.seen.as_deref().and_then(Awaited::of);
    let awaited = awaited.map(|awaited| awaited.after_join(cx.memory.joined.as_ref()));
    let to_be_joined = awaited.as_ref().and_then(Awaited::to_be_joined).cloned();
    let engine = match (awaited, client) {
        (Some(awaited), Some(client)) => {
            Either::Left(wait_for_change(client, awaited, Arc::clone(&cx.clients.metrics)))
        }
        (Some(_) | None, _) => Either::Right(pending()),
    };
    // Apiserver: endpoints of Services, while a node drains.
    let since = cx.observer.questions.endpoints.awaited_since().map(str::to_owned);
    let namespace = cx.cluster.namespace().to_owned();
    let endpoints = wait_for_endpoints(cx.clients.api.clone(), namespace, since);
    // Apiserver: the owners of pods, and the objects that operators make these from, while no node is under
    // way; otherwise they are read at each observation.
    let is_under_way = next.is_under_way();
    let owners = cx.observer.facts.owners.versions().filter(|_| !is_under_way).unwrap_or_default();
    let owners = wait_for_owner(cx.clients.api.clone(), cx.cluster.namespace().to_owned(), owners);
    let objects = cx.observer.facts.operator_objects.versions();
    let objects = if is_under_way { Vec::new() } else { objects };
    let objects =
        wait_for_object(cx.clients.api.clone(), cx.cluster.namespace().to_owned(), objects);
    tokio::pin!(engine, endpoints, owners, objects);
    loop {
        tokio::select! {
            biased;
            () = sleep_until(until) => return,
            () = polls.changed() => return,
            requester = snapshots.next() => {
                let answer = Box::pin(snapshot(cx)).await;
                // A client that has gone needs no answer.
                let _ = requester.send(answer);
            }
            () = &mut engine => {
                cx.memory.joined = to_be_joined;
                return;
            }
            () = &mut endpoints => return,
            name = &mut owners => {
                cx.observer.facts.owners.forget(&name);
                return;
            }
            key = &mut objects => {
                cx.observer.facts.operator_objects.forget(&key);
                return;
            }
            // Apiserver, watches: the pods and the SearchCluster.
            () = cx.pod_watch.changed(&mut cx.observer.pods) => return,
            () = cx.cluster.changed() => return,
            () = cx.clients.definition.changed() => return,
        }
    }
}

/// The managers whose next change matters: those of the busy pods in the ledger; if there are very many, the
/// first ones.
fn managers_to_poll(
    ledger: Option<&Ledger>,
    managers: &Managers,
) -> Vec<(String, ManagerClient, Cursor)> {
    let Some(ledger) = ledger else { return Vec::new() };
    let mut before = BTreeSet::new();
    let poll = |uid: &str| {
        let (client, cursor) = managers.cursor(uid)?;
        Some((uid.to_owned(), client.clone(), cursor.clone()))
    };
    ledger.busy_pods().filter(|uid| before.insert(*uid)).filter_map(poll).take(MAX_POLLS).collect()
}

/// Time that a manager may delay its answer.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after which a failed poll counts as a change. It counts only once until the manager was observed
/// again.
const FAILED_POLL_PAUSE: Duration = Duration::from_secs(1);

/// The running polls, by uid of the pod.
#[derive(Debug)]
pub(crate) struct ManagerPolls {
    running: BTreeMap<String, Poll>,
    /// Reported change of each manager: its cursor at the last observation, and that of the answer. The
    /// change is not reported again while the next look fails.
    reported: BTreeMap<String, (Cursor, Cursor)>,
    changes: mpsc::UnboundedReceiver<Change>,
    sender: mpsc::UnboundedSender<Change>,
}

#[derive(Debug)]
struct Poll {
    /// Cursor of the manager at the last observation.
    observed: Cursor,
    /// Cursor from which the manager has to differ.
    from: Cursor,
    /// True if a change was reported since, so that a failed poll is no news.
    is_known: bool,
    task: AbortHandle,
}

#[derive(Debug)]
struct Change {
    uid: String,
    from: Cursor,
    /// Cursor of the answer; equal to `from` without an answer.
    to: Cursor,
}

impl Default for ManagerPolls {
    fn default() -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        Self { running: BTreeMap::new(), reported: BTreeMap::new(), changes, sender }
    }
}

impl ManagerPolls {
    /// Polls exactly these managers from now on, each by its cursor at the last observation.
    fn set(&mut self, wanted: Vec<(String, ManagerClient, Cursor)>) {
        let mut before = std::mem::take(&mut self.running);
        let reported = std::mem::take(&mut self.reported);
        for (uid, client, observed) in wanted {
            let told = reported.get(&uid).filter(|(of, _)| *of == observed);
            let (from, is_known) = (told.map_or(&observed, |(_, to)| to).clone(), told.is_some());
            if let Some(told) = told {
                self.reported.insert(uid.clone(), told.clone());
            }
            let task = match before.remove(&uid) {
                Some(known) if known.from == from && known.is_known == is_known => known.task,
                other => {
                    if let Some(known) = other {
                        known.task.abort();
                    }
                    self.spawn(uid.clone(), client, from.clone(), is_known)
                }
            };
            self.running.insert(uid, Poll { observed, from, is_known, task });
        }
        for poll in before.into_values() {
            poll.task.abort();
        }
    }

    fn spawn(
        &self,
        uid: String,
        client: ManagerClient,
        from: Cursor,
        is_known: bool,
    ) -> AbortHandle {
        let sender = self.sender.clone();
        let poll = async move {
            let to = loop {
                match client.status_after(&from, POLL_TIMEOUT).await {
                    Ok(None) => {}
                    Ok(Some(answer)) => break answer.status.cursor,
                    Err(_) => {
                        sleep(FAILED_POLL_PAUSE).await;
                        if !is_known {
                            break from.clone();
                        }
                    }
                }
            };
            // Without a receiver the task of the SearchCluster has ended.
            let _ = sender.send(Change { uid, from, to });
        };
        tokio::spawn(poll).abort_handle()
    }

    /// Completes when one of the managers has changed.
    async fn changed(&mut self) {
        // This struct holds a sender, so the channel never closes.
        while let Some(Change { uid, from, to }) = self.changes.recv().await {
            if self.running.get(&uid).is_some_and(|poll| poll.from == from) {
                if let Some(poll) = self.running.remove(&uid) {
                    self.reported.insert(uid, (poll.observed, to));
                }
                return;
            }
        }
    }
}

impl Drop for ManagerPolls {
    fn drop(&mut self) {
        for poll in self.running.values() {
            poll.task.abort();
        }
    }
}

/// Least time between the begins of two watches: a proxy may end each at once.
const LEAST_BETWEEN: Duration = Duration::from_secs(10);

/// Completes with the name of a StatefulSet that differs from the version that was read. Never completes if
/// none is known, or if they cannot be watched: then they are read when they are due.
async fn wait_for_owner(
    api: Apiserver,
    namespace: String,
    known: BTreeMap<String, String>,
) -> String {
    if known.is_empty() {
        return pending().await;
    }
    let sets: Api<StatefulSet> = Api::namespaced(api.client(), &namespace);
    wait_for_version(&sets, &WatchParams::default(), &known).await
}

/// Completes with the key of an operator's object that differs from the version that was read. Never completes if
/// none is known, or if they cannot be watched.
async fn wait_for_object(api: Apiserver, namespace: String, known: Vec<(Key, String)>) -> Key {
    let changed = async |(key, version): (Key, String)| {
        let objects = api.dynamic(&api_resource(key.0), &namespace);
        let params = WatchParams::default().fields(&format!("metadata.name={}", key.1));
        let known = BTreeMap::from([(key.1.clone(), version)]);
        wait_for_version(objects.api(), &params, &known).await;
        key
    };
    let changed: Vec<_> = known.into_iter().map(|known| Box::pin(changed(known))).collect();
    if changed.is_empty() {
        return pending().await;
    }
    select_all(changed).await.0
}

/// Completes with the name of an object that differs from the version that was read.
async fn wait_for_version<K: Clone + Debug + DeserializeOwned>(
    objects: &Api<K>,
    params: &WatchParams,
    known: &BTreeMap<String, String>,
) -> String {
    loop {
        let began = Instant::now();
        match changed_in_one_watch(objects, params, known).await {
            Ok(Some(name)) => return name,
            // One watch has a limited time; its end is no error.
            Ok(None) => sleep_until(began + LEAST_BETWEEN).await,
            Err(_) => return pending().await,
        }
    }
}

async fn changed_in_one_watch<K: Clone + Debug + DeserializeOwned>(
    objects: &Api<K>,
    params: &WatchParams,
    known: &BTreeMap<String, String>,
) -> kube::Result<Option<String>> {
    // From version 0: first all existing objects, from the apiserver's cache.
    let params = params.clone().timeout(WATCH_SECONDS);
    let mut changes = pin!(objects.watch_metadata(&params, "0").await?);
    while let Some(change) = changes.next().await {
        let (WatchEvent::Added(object)
        | WatchEvent::Modified(object)
        | WatchEvent::Deleted(object)) = change?
        else {
            continue;
        };
        let (name, version) = (object.metadata.name, object.metadata.resource_version);
        let read = name.as_ref().and_then(|name| known.get(name));
        let (Some(name), Some(read), Some(version)) = (&name, read, version) else { continue };
        if is_later(&version, read) {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
