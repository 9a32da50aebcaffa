//! Whether pods that are to be replaced may be deleted, and fit again where their volumes are:
//! otherwise their nodes would be stopped for nothing, or stay pending while their data waits.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, PodTemplateSpec};
use serde_json::Value;
use stayput_restart::{self as restart, Known, Policy, UpdateStep};
use tokio::time::Instant;

use super::ages::Ages;
use super::claims::Uids;
use super::owners::Owners;
use super::snapshot::unknown;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::fit::{Coming, is_on_one_node, why_not};
use crate::controller::pods::Facts;

/// What was read of a pod that is not under way may be this old.
const MAX_AGE: Duration = Duration::from_secs(10);

/// What was found out of each pod, by uid.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    known: BTreeMap<String, Found>,
}

#[derive(Debug)]
struct Found {
    at: Instant,
    /// The revision of the pod that would come.
    revision: String,
    /// Why it cannot be deleted.
    undeletable: Option<String>,
    why_not: Known<Option<String>>,
    /// Of its volume claims.
    uids: Uids,
}

/// A Kubernetes node and what is on it; no node if it is gone.
type Place = Result<(Option<Node>, Vec<Pod>), ApiError>;

impl Rooms {
    /// Finds out what is due of pods that the policy allows to be replaced, and forgets all others.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        policy: &Policy,
        pods: &[(&Arc<Facts>, &restart::Pod)],
        owners: &Owners,
        ages: &Ages<'_>,
    ) {
        let is_allowed = policy.update.contains(&UpdateStep::Replace);
        let replaced = pods.iter().filter(|_| is_allowed).filter_map(|(facts, pod)| {
            let update = pod.update.as_ref().ok()?.as_ref()?;
            (update.step == UpdateStep::Replace).then_some((*facts, update.to.as_str()))
        });
        let replaced: Vec<(&Arc<Facts>, &str)> = replaced.collect();
        self.known.retain(|uid, _| replaced.iter().any(|(facts, _)| facts.uid == *uid));
        let is_due = |(facts, revision): &&(&Arc<Facts>, &str)| {
            self.known.get(&facts.uid).is_none_or(|found| {
                let is_old = found.at.elapsed() >= MAX_AGE || ages.is_under_way(&facts.uid);
                found.revision != *revision || is_old
            })
        };
        let due: Vec<&(&Arc<Facts>, &str)> = replaced.iter().filter(is_due).collect();
        let tried = due.iter().map(|(facts, _)| undeletable(api, facts)).collect();
        let mut undeletable: BTreeMap<String, String> =
            join_limited(tried).await.into_iter().flatten().collect();
        let deletable = due.iter().filter(|(facts, _)| !undeletable.contains_key(&facts.uid));
        let deletable: Vec<_> = deletable.collect();
        let nodes = match deletable.is_empty() {
            true => None,
            // Without them the names of labels say it.
            false => api.nodes().await.ok().map(|nodes| nodes.items),
        };
        let nodes = nodes.as_deref();
        let bound = deletable.into_iter().map(|(facts, _)| is_bound(api, facts, nodes)).collect();
        let mut bound: BTreeMap<String, Result<Bound, ApiError>> =
            join_limited(bound).await.into_iter().collect();
        let is_bound = |facts: &Facts| {
            let bound = bound.get(&facts.uid).and_then(|bound| bound.as_ref().ok());
            bound.is_some_and(|bound| bound.is_on_one_node)
        };
        let names = due.iter().filter(|(facts, _)| is_bound(facts));
        let names: BTreeSet<&str> = names.filter_map(|(facts, _)| node_of(facts)).collect();
        let places = names.into_iter().map(|name| place(api, name)).collect();
        let places: BTreeMap<&str, Place> = join_limited(places).await.into_iter().collect();
        for (facts, revision) in due {
            let (why_not, uids) = match bound.remove(&facts.uid) {
                Some(Err(error)) => (Err(unread(facts, &error)), Uids::new()),
                Some(Ok(Bound { leaving: Some(claim), uids, .. })) => {
                    (Ok(Some(would_be_lost(facts, &claim))), uids)
                }
                Some(Ok(Bound { is_on_one_node: true, uids, .. })) => {
                    (judge(facts, revision, owners, &places), uids)
                }
                Some(Ok(Bound { is_on_one_node: false, uids, .. })) => (Ok(None), uids),
                None => (Ok(None), Uids::new()),
            };
            let found = Found {
                at: Instant::now(),
                revision: (*revision).to_owned(),
                undeletable: undeletable.remove(&facts.uid),
                why_not,
                uids,
            };
            self.known.insert(facts.uid.clone(), found);
        }
    }

    /// Why the apiserver would not delete this pod; none if it would, or if it is not to be replaced.
    pub(super) fn undeletable(&self, uid: &str) -> Option<String> {
        self.known.get(uid)?.undeletable.clone()
    }

    /// The uids of this pod's volume claims; nothing if it is not to be replaced.
    pub(super) fn claim_uids(&self, uid: &str) -> Option<Uids> {
        Some(self.known.get(uid)?.uids.clone())
    }

    /// Why another pod in the place of this one would fit nowhere; none if it would, or if none is
    /// to come there.
    pub(super) fn why_not(&self, pod: &restart::Pod) -> Known<Option<String>> {
        if let Err(unknown) = &pod.update {
            return Err(unknown.clone());
        }
        self.known.get(&pod.uid).map_or(Ok(None), |found| found.why_not.clone())
    }
}

/// Uid of a pod that the apiserver would not delete, and why. What it does not answer counts, too:
/// after a stop the answer would come too late.
async fn undeletable(api: &Apiserver, pod: &Facts) -> Option<(String, String)> {
    match api.try_to_delete_pod(&pod.namespace, &pod.name, &pod.uid).await {
        Ok(()) => None,
        // Another one has its name by now, or none.
        Err(error) if error.is_not_found() || error.is_conflict() => None,
        Err(error) => Some((pod.uid.clone(), error.to_string())),
    }
}

fn node_of(pod: &Facts) -> Option<&str> {
    pod.live.as_ref()?.kubernetes_node.as_deref()
}

/// What the volume claims of a pod say.
struct Bound {
    /// One of its volumes is on one node.
    is_on_one_node: bool,
    uids: Uids,
    /// One that is being deleted, which ends with the pod.
    leaving: Option<String>,
}

/// Uid of the pod, and this of it.
async fn is_bound(
    api: &Apiserver,
    pod: &Facts,
    nodes: Option<&[Node]>,
) -> (String, Result<Bound, ApiError>) {
    let read = async {
        let mut bound = Bound { is_on_one_node: false, uids: Uids::new(), leaving: None };
        for name in pod.live.iter().flat_map(|live| live.claims()) {
            let claim: PersistentVolumeClaim = api.get(&pod.namespace, name).await?;
            bound.uids.extend(claim.metadata.uid.map(|uid| (name.to_owned(), uid)));
            if claim.metadata.deletion_timestamp.is_some() {
                bound.leaving.get_or_insert(name.to_owned());
            }
            if let Some(volume) = claim.spec.and_then(|spec| spec.volume_name) {
                bound.is_on_one_node |= is_on_one_node(&api.volume(&volume).await?, nodes);
            }
        }
        Ok(bound)
    };
    (pod.uid.clone(), read.await)
}

async fn place<'n>(api: &Apiserver, name: &'n str) -> (&'n str, Place) {
    let read = async {
        let node = match api.node(name).await {
            Ok(node) => Some(node),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        Ok((node, api.pods_on(name).await?.items))
    };
    (name, read.await)
}

fn judge(
    pod: &Facts,
    revision: &str,
    owners: &Owners,
    places: &BTreeMap<&str, Place>,
) -> Known<Option<String>> {
    let Some(name) = node_of(pod) else { return Ok(None) };
    let (node, there) = match places.get(name) {
        Some(Ok((node, there))) => (node, there),
        Some(Err(error)) => return Err(unread(pod, error)),
        None => return Ok(None),
    };
    let Some(coming) = coming(pod, revision, owners, there) else {
        let message = format!("{}: what its new template requests was not read", pod.name);
        return Err(unknown(message));
    };
    let why = match node {
        None => Some("the node is gone".to_owned()),
        Some(node) => why_not(node, there, &coming).map_err(|why| unread(pod, &why))?,
    };
    Ok(why.map(|why| {
        format!(
            "its volume is on the Kubernetes node {name}, and another pod in the place of {} would \
             not fit there: {why}",
            pod.name
        )
    }))
}

/// The pod that would come in the place of this one; none if its template was not read.
fn coming(pod: &Facts, revision: &str, owners: &Owners, there: &[Pod]) -> Option<Coming> {
    let itself = there.iter().find(|one| one.metadata.uid.as_deref() == Some(&pod.uid));
    let is_same_template = pod.owner.as_ref().is_some_and(|owner| owner.revision == revision);
    if is_same_template {
        return itself.map(Coming::again);
    }
    let read = |template: &Value| serde_json::from_value::<PodTemplateSpec>(template.clone()).ok();
    let new = owners.wanted_template(pod).and_then(read)?;
    let old = owners.actual_template(pod).and_then(read).filter(|_| itself.is_some());
    let nothing = Pod::default();
    let coming = Coming::of(new, old, itself.unwrap_or(&nothing), revision);
    Some(Coming { uid: pod.uid.clone(), namespace: pod.namespace.clone(), ..coming })
}

fn would_be_lost(pod: &Facts, claim: &str) -> String {
    format!(
        "its volume claim {claim} is being deleted, which ends once the pod {} is gone: the data would be \
         lost with it. Nothing takes that back: move the data to other nodes, or copy it",
        pod.name
    )
}

fn unread(pod: &Facts, error: &dyn Display) -> restart::Unknown {
    unknown(format!(
        "cannot find out whether another pod in the place of {} would fit where its volume is: {error}",
        pod.name
    ))
}
