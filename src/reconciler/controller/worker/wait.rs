//! Between two passes: until a watch, a manager or the engine has news, or the time is over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, pending};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use tokio::time::{Instant, sleep, sleep_until};

use super::pass::Next;
use super::{Followed, Worker};
use crate::cluster::SearchCluster;
use crate::controller::metrics::{Metrics, Side};
use crate::controller::observe::health;
use crate::engine_client::EngineClient;
use stayput_api::Cursor;
use stayput_net::manager_client::ManagerClient;
use stayput_restart::{Health, Member, Snapshot, annotation};

/// The engine is asked this soon, and then ever less often up to the second.
const SOON: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(2);

impl Worker {
    /// Waits for news.
    pub(super) async fn wait(&mut self, next: Next) {
        let until = Instant::now() + next.after;
        self.polls.set(self.wanted(next.seen.as_deref()));
        let client = self.eyes.engine.client().map(|(client, _)| client);
        let engine = match (next.seen.as_deref().and_then(Awaited::of), client) {
            (Some(awaited), Some(client)) => {
                Either::Left(follow(client, awaited, Arc::clone(&self.metrics)))
            }
            (Some(_) | None, _) => Either::Right(pending()),
        };
        tokio::pin!(engine);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return,
                () = self.polls.changed() => return,
                viewer = self.window.viewer() => Box::pin(self.show_to(viewer)).await,
                () = &mut engine => return,
                news = hear(&mut self.events) => match news {
                    Ok((event, label)) => {
                        if self.eyes.pods.hear(event, label.as_deref()) {
                            return;
                        }
                    }
                    Err(error) => {
                        if self.is_blinded(&error) {
                            return;
                        }
                    }
                },
                changed = self.clusters.changed() => {
                    // The sender lives as long as the controller.
                    if changed.is_err() || self.is_news() {
                        return;
                    }
                }
            }
        }
    }

    /// Whether what the watch shows of the SearchClusters concerns us.
    fn is_news(&mut self) -> bool {
        let known = self.cluster.clone();
        match (known, self.newest()) {
            (Some(known), Some(newest)) => {
                !Arc::ptr_eq(&known, &newest) && !is_same(&known, &newest)
            }
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        }
    }

    /// The managers whose next change matters: those of nodes on their way.
    fn wanted(&self, seen: Option<&Snapshot>) -> Vec<(String, ManagerClient, Cursor)> {
        let Some(snapshot) = seen else { return Vec::new() };
        let uids: BTreeSet<&str> = snapshot.ledger.busy_pods().collect();
        let line = |uid: &str| {
            let (client, cursor) = self.eyes.managers.line(uid)?;
            Some((uid.to_owned(), client.clone(), cursor.clone()))
        };
        uids.into_iter().filter_map(line).collect()
    }
}

/// The next event of the pods' watch, or what is wrong with the watch itself.
async fn hear(followed: &mut Option<Followed>) -> watcher::Result<(Event<Pod>, Option<String>)> {
    let Some(followed) = followed else { return pending().await };
    match followed.events.next().await {
        Some(event) => Ok((event?, followed.label.clone())),
        None => pending().await,
    }
}

/// Whether two states of one SearchCluster ask for the same: our own writes come back as well, and
/// others write what is none of our business.
pub(super) fn is_same(one: &SearchCluster, other: &SearchCluster) -> bool {
    let (a, b) = (&one.metadata, &other.metadata);
    let ledger =
        |cluster: &SearchCluster| cluster.status.as_ref().map(|status| status.ledger.clone());
    let ours = |metadata: &ObjectMeta| {
        let all = metadata.annotations.as_ref();
        annotation::ALL.map(|key| all.and_then(|all| all.get(key)).cloned())
    };
    a.uid == b.uid
        && a.generation == b.generation
        && ours(a) == ours(b)
        && a.finalizers == b.finalizers
        && a.deletion_timestamp == b.deletion_timestamp
        && ledger(one) == ledger(other)
}

/// What of the engine is waited for.
enum Awaited {
    /// Another list of nodes: name and ephemeral id of each.
    Nodes(BTreeSet<(String, String)>),
    /// Another health.
    Health(Option<Health>),
}

impl Awaited {
    /// While a node is on its way it is the list of nodes, between two nodes the health.
    fn of(snapshot: &Snapshot) -> Option<Self> {
        let restart = snapshot.ledger.restart.as_ref()?;
        let engine = snapshot.engine.as_ref().ok();
        if restart.members.iter().any(Member::is_under_way) {
            let nodes = engine.map(|engine| &engine.nodes).into_iter().flatten();
            let nodes = nodes.map(|node| (node.name.clone(), node.ephemeral_id.clone()));
            return Some(Self::Nodes(nodes.collect()));
        }
        Some(Self::Health(engine.and_then(|engine| engine.health.clone().ok())))
    }
}

/// Completes when what is awaited is there. An engine that cannot be asked has no news.
async fn follow(client: Arc<EngineClient>, awaited: Awaited, metrics: Arc<Metrics>) {
    let mut pause = SOON;
    loop {
        sleep(pause).await;
        pause = (pause * 3 / 2).min(SELDOM);
        let changed = match &awaited {
            Awaited::Nodes(known) => {
                let members = client.members().await;
                metrics.count_request(Side::Engine, "members", members.is_ok());
                members.is_ok_and(|members| {
                    let nodes = members.nodes.into_iter();
                    let now: BTreeSet<(String, String)> =
                        nodes.map(|node| (node.name, node.ephemeral_id)).collect();
                    now != *known
                })
            }
            Awaited::Health(known) => {
                let now = client.health().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                now.is_ok_and(|now| known.as_ref() != Some(&health(&now)))
            }
        };
        if changed {
            return;
        }
    }
}
