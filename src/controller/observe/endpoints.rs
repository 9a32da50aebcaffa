//! Finds out if Services send requests to a pod: from the EndpointSlices of its namespace, which are listed
//! and watched only while a manager drains. Without the right to do so, the manager ends the drain by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::pending;
use k8s_openapi::api::discovery::v1::{Endpoint as Entry, EndpointConditions, EndpointSlice};
use kube::Api;
use kube::api::{ListParams, ObjectList, WatchParams};
use stayput_kube_access::read_limits::WATCH_SECONDS;
use stayput_restart::{Drain, Endpoint, Known, Pod, Policy, Time, Unknown};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::apiserver::{ApiError, Apiserver};
use crate::observe::snapshot::now;

/// Minimum time between two lists of all EndpointSlices.
const LEAST_BETWEEN: Duration = Duration::from_millis(200);

/// State of the last list, for the pods that drained then.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    version: Option<String>,
    unserved: Unserved,
    /// Follows the EndpointSlices between two observations.
    following: JoinSet<()>,
}

/// Time since which pods get no requests, by uid.
#[derive(Debug, Clone, Default)]
struct Unserved(Arc<Mutex<BTreeMap<String, Time>>>);

impl Unserved {
    /// Records the endpoint of a pod; returns the time since which the pod gets no requests.
    fn note(&self, uid: &str, endpoint: &Known<Endpoint>, now: Time) -> Option<Time> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *endpoint != Ok(Endpoint::NotReady) {
            known.remove(uid);
            return None;
        }
        Some(*known.entry(uid.to_owned()).or_insert(now))
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Endpoints {
    /// Version of the EndpointSlices after which a change may end a drain, if a drain waits for one.
    pub(crate) fn awaited_since(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Watches these pods, which begin to drain, until the next observation: while actions are carried out
    /// nothing is observed.
    pub(crate) fn follow(&mut self, api: &Apiserver, namespace: &str, pods: Vec<String>) {
        let (api, namespace, unserved) = (api.clone(), namespace.to_owned(), self.unserved.clone());
        self.following.spawn(async move {
            let (slices, all) = (api.objects::<EndpointSlice>(&namespace), ListParams::default());
            let mut next = Instant::now();
            // The observation reports EndpointSlices that cannot be listed.
            while let Ok(listed) = slices.list(&all).await {
                let note = |uid| unserved.note(uid, &endpoint(Ok(&listed), uid), now());
                if pods.iter().filter_map(|uid| note(uid)).count() == pods.len() {
                    return;
                }
                let version = listed.metadata.resource_version;
                // Each change of any Service of the namespace ends the wait.
                wait_for_endpoints(api.clone(), namespace.clone(), version).await;
                next += LEAST_BETWEEN;
                sleep_until(next).await;
                next = next.max(Instant::now());
            }
        });
    }

    /// Adds endpoint and unserved time to the pods that drain.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        policy: &Policy,
        pods: &mut [Pod],
    ) {
        self.version = None;
        self.following = JoinSet::new();
        let drains = |pod: &Pod| pod.manager.as_ref().is_ok_and(|manager| manager.draining);
        if policy.drain != Drain::Auto || !pods.iter().any(drains) {
            self.unserved.clear();
            return;
        }
        let listed = api.objects(namespace).list(&ListParams::default()).await;
        if let Err(error) = &listed {
            tracing::warn!("a drain takes its longest time: {error}");
        }
        let listed = listed.as_ref();
        for pod in pods.iter_mut().filter(|pod| drains(pod)) {
            pod.endpoint = endpoint(listed, &pod.uid);
            pod.unserved_since = self.unserved.note(&pod.uid, &pod.endpoint, now());
            if pod.endpoint == Ok(Endpoint::Ready) {
                self.version = listed.ok().and_then(|list| list.metadata.resource_version.clone());
            }
        }
    }
}

fn endpoint(listed: Result<&ObjectList<EndpointSlice>, &ApiError>, uid: &str) -> Known<Endpoint> {
    let slices = listed.map_err(|error| Unknown { message: error.to_string() })?;
    let is_it = |entry: &&Entry| {
        let target = entry.target_ref.as_ref();
        target.is_some_and(|target| target.uid.as_deref() == Some(uid))
    };
    let found: BTreeSet<bool> =
        slices.iter().flat_map(|slice| &slice.endpoints).filter(is_it).map(is_sent_to).collect();
    Ok(match found.last() {
        None => Endpoint::Absent,
        Some(false) => Endpoint::NotReady,
        Some(true) => Endpoint::Ready,
    })
}

/// True if Services send requests to the entry. `serving` is the readiness of the pod. A Service with
/// `publishNotReadyAddresses` calls all its pods ready: no wait would take this one out of it.
fn is_sent_to(entry: &Entry) -> bool {
    let conditions = entry.conditions.as_ref();
    let is = |condition: fn(&_) -> Option<bool>| conditions.and_then(condition).unwrap_or(true);
    is(|conditions: &EndpointConditions| conditions.ready) && is(|conditions| conditions.serving)
}

/// Completes once an EndpointSlice differs from the list of this version. Never completes without a version,
/// or if EndpointSlices cannot be watched: then the next reconcile lists them again.
pub(crate) async fn wait_for_endpoints(api: Apiserver, namespace: String, since: Option<String>) {
    let Some(version) = since else { return pending().await };
    let slices: Api<EndpointSlice> = Api::namespaced(api.client(), &namespace);
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let Ok(changes) = slices.watch(&params, &version).await else {
        return pending().await;
    };
    match pin!(changes).next().await {
        Some(Ok(_)) => {}
        Some(Err(_)) | None => pending().await,
    }
}

#[cfg(test)]
mod tests;
