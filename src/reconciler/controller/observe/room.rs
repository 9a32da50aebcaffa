//! Whether pods that are to be replaced may be deleted, and fit again where their volumes are:
//! otherwise their nodes would be stopped for nothing, or stay pending while their data waits.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, PodSpec};
use stayput_restart::{self as restart, Known, Policy, UpdateStep};
use tokio::time::Instant;

use super::ages::Ages;
use super::claims::Uids;
use super::owners::Owners;
use super::snapshot::unknown;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::{done_by, join_limited};
use crate::controller::fit::{is_on_one_node, why_not};
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
    /// None: there was no time to find it out.
    at: Option<Instant>,
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
    /// Finds out what is due of pods that the policy allows to be replaced, and forgets all others. Of
    /// pods that are not under way only until `end`; the next observation goes on with the others.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        policy: &Policy,
        pods: &[(&Arc<Facts>, &restart::Pod)],
        owners: &Owners,
        ages: &Ages<'_>,
        end: Instant,
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
                let is_old = found.at.is_none_or(|at| at.elapsed() >= MAX_AGE)
                    || ages.is_under_way(&facts.uid);
                found.revision != *revision || is_old
            })
        };
        let mut due: Vec<(&Arc<Facts>, &str)> = replaced.iter().filter(is_due).copied().collect();
        let asked = |facts: &Facts| self.known.get(&facts.uid).and_then(|found| found.at);
        due.sort_by_key(|(facts, _)| (!ages.is_under_way(&facts.uid), asked(facts)));
        let end_of = |facts: &Facts| (!ages.is_under_way(&facts.uid)).then_some(end);
        let ask = async |(facts, revision): (&Arc<Facts>, &str)| {
            let answers = done_by(end_of(facts), answers(api, facts)).await;
            (Arc::clone(facts), revision.to_owned(), answers)
        };
        let answers = join_limited(due.into_iter().map(ask).collect()).await;
        // Kubernetes nodes, and until when to ask about each.
        let mut names: BTreeMap<&str, Option<Instant>> = BTreeMap::new();
        for (facts, _, answers) in &answers {
            if let (Some(Answers::Bound(Ok(bound))), Some(name)) = (answers, node_of(facts))
                && bound.is_on_one_node
            {
                let last = names.entry(name).or_insert(Some(end));
                *last = last.and(end_of(facts));
            }
        }
        let place = async |(name, end)| done_by(end, place(api, name)).await;
        let places = join_limited(names.into_iter().map(place).collect()).await;
        let places: BTreeMap<&str, Place> = places.into_iter().flatten().collect();
        for (facts, revision, answers) in &answers {
            let found = answers
                .as_ref()
                .and_then(|answers| Found::of(facts, revision, answers, owners, &places));
            let known = self.known.get(&facts.uid);
            if found.is_some() || known.is_none_or(|known| known.revision != *revision) {
                let found = found.unwrap_or_else(|| Found::not_asked(facts, revision));
                self.known.insert(facts.uid.clone(), found);
            }
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

impl Found {
    /// None if there was no time to read the Kubernetes node.
    fn of(
        pod: &Facts,
        revision: &str,
        answers: &Answers,
        owners: &Owners,
        places: &BTreeMap<&str, Place>,
    ) -> Option<Self> {
        let mut found = Self {
            at: Some(Instant::now()),
            revision: revision.to_owned(),
            undeletable: None,
            why_not: Ok(None),
            uids: Uids::new(),
        };
        match answers {
            Answers::Undeletable(why) => found.undeletable = Some(why.clone()),
            Answers::Bound(Err(error)) => found.why_not = Err(unread(pod, error)),
            Answers::Bound(Ok(bound)) => {
                found.uids.clone_from(&bound.uids);
                if let Some(claim) = &bound.leaving {
                    found.why_not = Ok(Some(would_be_lost(pod, claim)));
                } else if bound.is_on_one_node
                    && let Some(name) = node_of(pod)
                {
                    let place = places.get(name)?;
                    found.why_not = judge(pod, revision, owners, name, place);
                }
            }
        }
        Some(found)
    }

    fn not_asked(pod: &Facts, revision: &str) -> Self {
        let message = format!(
            "whether another pod in the place of {} would fit was not asked yet: the apiserver is slow \
             to answer",
            pod.name
        );
        let why_not = Err(unknown(message));
        let revision = revision.to_owned();
        Self { at: None, revision, undeletable: None, why_not, uids: Uids::new() }
    }
}

/// What the apiserver says of a pod.
enum Answers {
    /// It would not delete it, and why.
    Undeletable(String),
    Bound(Result<Bound, ApiError>),
}

async fn answers(api: &Apiserver, pod: &Facts) -> Answers {
    match undeletable(api, pod).await {
        Some(why) => Answers::Undeletable(why),
        None => Answers::Bound(bound(api, pod).await),
    }
}

/// Why the apiserver would not delete a pod. What it does not answer counts, too: after a stop the
/// answer would come too late.
async fn undeletable(api: &Apiserver, pod: &Facts) -> Option<String> {
    match api.try_to_delete_pod(&pod.namespace, &pod.name, &pod.uid).await {
        Ok(()) => None,
        // Another one has its name by now, or none.
        Err(error) if error.is_not_found() || error.is_conflict() => None,
        Err(error) => Some(error.to_string()),
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

async fn bound(api: &Apiserver, pod: &Facts) -> Result<Bound, ApiError> {
    let mut bound = Bound { is_on_one_node: false, uids: Uids::new(), leaving: None };
    for name in pod.live.iter().flat_map(|live| live.claims()) {
        let claim: PersistentVolumeClaim = api.get(&pod.namespace, name).await?;
        bound.uids.extend(claim.metadata.uid.map(|uid| (name.to_owned(), uid)));
        if claim.metadata.deletion_timestamp.is_some() {
            bound.leaving.get_or_insert(name.to_owned());
        }
        if let Some(volume) = claim.spec.and_then(|spec| spec.volume_name) {
            bound.is_on_one_node |= is_on_one_node(&api.volume(&volume).await?);
        }
    }
    Ok(bound)
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
    name: &str,
    place: &Place,
) -> Known<Option<String>> {
    let is_same_template = pod.owner.as_ref().is_some_and(|owner| owner.revision == revision);
    let (node, there) = match place {
        Ok((node, there)) => (node, there),
        Err(error) => return Err(unread(pod, error)),
    };
    let template = owners.wanted_template(pod).map(|template| template["spec"].clone());
    let of_template = template.and_then(|spec| serde_json::from_value::<PodSpec>(spec).ok());
    // Of the same template comes a pod that requests the same.
    let itself = there.iter().find(|one| one.metadata.uid.as_deref() == Some(&pod.uid));
    let itself = itself.and_then(|pod| pod.spec.clone()).filter(|_| is_same_template);
    let wanted = of_template.or(itself);
    let Some(wanted) = wanted else {
        let message = format!("{}: what its new template requests was not read", pod.name);
        return Err(unknown(message));
    };
    let why = match node {
        None => Some("the node is gone".to_owned()),
        Some(node) => why_not(node, there, &pod.uid, &wanted),
    };
    Ok(why.map(|why| {
        format!(
            "its volume is on the Kubernetes node {name}, and another pod in the place of {} would \
             not fit there: {why}",
            pod.name
        )
    }))
}

fn would_be_lost(pod: &Facts, claim: &str) -> String {
    format!(
        "its volume claim {claim} is being deleted, which ends once the pod {} is gone: the data would be \
         lost with it. Nothing takes that back: move the data to other nodes, or copy it",
        pod.name
    )
}

fn unread(pod: &Facts, error: &ApiError) -> restart::Unknown {
    unknown(format!(
        "cannot find out whether another pod in the place of {} would fit where its volume is: {error}",
        pod.name
    ))
}
