//! Watches a restart: the SearchCluster and its pods, until the restart ends.

mod availability;
pub(crate) mod error;
pub(crate) mod objects;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::read_limits::watch_config;
use stayput_restart::HistoryEntry;
use tokio::time::sleep;

use crate::apiserver;
use crate::apiserver::Operation;
use crate::clock::now;
use crate::progress::{Line, Reported, State, observe};
use crate::view::ClusterView;
use crate::watch::availability::{Availability, looks};
use crate::watch::error::WatchError;
use crate::watch::objects::{Objects, heard};

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
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), &namespace);
    let by_name = watch_config().fields(&format!("metadata.name={name}"));
    let mut clusters = pin!(watcher(clusters, by_name).default_backoff());
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let selected = watch_config().labels_from(&apiserver::selector(cluster)?);
    let mut pods = pin!(watcher(pods, selected).default_backoff());

    let watch_clusters = Operation::watch_clusters(&namespace);
    let watch_pods = Operation::watch_pods(&namespace);
    let mut objects = Objects::new(cluster.clone());
    let mut reported = Reported::new(id);
    let mut looks = pin!(looks(client));
    let mut availability = Availability::default();
    loop {
        let mut next_check = None;
        if let Some((cluster, pods)) = objects.complete() {
            let cluster = cluster.ok_or_else(|| WatchError::ClusterDeleted(name.clone()))?;
            let view = ClusterView::from_objects(cluster, pods);
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
                objects.apply_cluster(event);
                lines.extend(line);
            }
            event = pods.next() => {
                let (event, line) = availability.hear(heard(&watch_pods, event)?, now());
                objects.apply_pod(event);
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
