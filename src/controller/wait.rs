//! Waits between two reconciles: until a watch, a manager or the engine reports a change, or the time is
//! over.

mod engine_change;
mod manager_polls;
mod owner_change;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::{Either, pending};
use tokio::time::{Instant, sleep_until};

use super::concurrency::MAX_POLLS;
use super::context::Context;
use super::observe::{Managers, wait_for_endpoints};
use super::requeue::Next;
use super::snapshot_requests::SnapshotQueue;
use super::snapshot_view::snapshot;
use stayput_api::Cursor;
use stayput_http::manager_client::ManagerClient;
use stayput_restart::Ledger;

pub(super) use engine_change::Processes;
use engine_change::{Awaited, wait_for_change};
pub(super) use manager_polls::ManagerPolls;
use owner_change::wait_for_owner;

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
    polls.set(managers_to_poll(next.ledger(), &cx.observer.managers));
    // Engine: its nodes or its health.
    let client = cx.observer.engine.client().map(|(client, _)| client);
    let awaited = next.seen.as_deref().and_then(Awaited::of);
    let awaited = awaited.map(|awaited| awaited.after_join(cx.joined.as_ref()));
    let to_be_joined = awaited.as_ref().and_then(Awaited::to_be_joined).cloned();
    let engine = match (awaited, client) {
        (Some(awaited), Some(client)) => {
            Either::Left(wait_for_change(client, awaited, Arc::clone(&cx.metrics)))
        }
        (Some(_) | None, _) => Either::Right(pending()),
    };
    // Apiserver: endpoints of Services, while a node drains.
    let since = cx.observer.endpoints.awaited_since().map(str::to_owned);
    let namespace = cx.cluster.namespace().to_owned();
    let endpoints = wait_for_endpoints(cx.api.clone(), namespace, since);
    // Apiserver: the owners of pods, at rest; otherwise they are read at each observation.
    let at_rest = next.seen.as_deref().is_some_and(|seen| seen.ledger.restart.is_none());
    let owners = cx.observer.owners.versions().filter(|_| at_rest).unwrap_or_default();
    let owners = wait_for_owner(cx.api.clone(), cx.cluster.namespace().to_owned(), owners);
    tokio::pin!(engine, endpoints, owners);
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
                cx.joined = to_be_joined;
                return;
            }
            () = &mut endpoints => return,
            name = &mut owners => {
                cx.observer.owners.forget(&name);
                return;
            }
            // Apiserver, watches: the pods and the SearchCluster.
            () = cx.pod_watch.changed(&mut cx.observer.pods) => return,
            () = cx.cluster.changed() => return,
            () = cx.definition.changed() => return,
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
