//! Checks that pods to be replaced may be deleted, and that their replacements fit where their volumes are;
//! and that there is room for a new size: otherwise their nodes would be stopped for nothing, or stay pending
//! while their data waits.

mod schedulable;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec,
};
use kube::api::{ListParams, ObjectList};
use kube::core::PartialObjectMeta;
use serde_json::Value;
use stayput_pod_update::PodRequests;
use stayput_restart::{self as restart, Known, PodUpdate, Policy, UpdateStep};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::owners::Owners;
use super::snapshot::unknown;
use crate::apiserver::{ApiError, Apiserver, only};
use crate::concurrency::{done_by, join_limited};
use crate::observe::replacement::Uids;
use crate::observe::snapshot::Ages;
use crate::pods::PodFacts;

use crate::observe::replacement::Successors;
use schedulable::{cordon, is_it, is_on_one_node, lacking, requests_of, resize};

/// Maximum age of the answers about a pod that is not under way.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Maximum age of the names and labels of Kubernetes nodes.
const NODES_MAX_AGE: Duration = Duration::from_secs(60);

/// Results of the checks, by uid of the pod.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    known: BTreeMap<String, RoomCheck>,
    nodes: Nodes,
}

#[derive(Debug)]
struct RoomCheck {
    /// Time of the check; `None` if there was no time for it.
    at: Option<Instant>,
    /// Revision of the replacement, and step of its update.
    revision: String,
    step: UpdateStep,
    /// Reason why the apiserver would not delete the pod, or not take its replacement.
    undeletable: Option<String>,
    why_not: Known<Option<String>>,
    /// Uids of the pod's volume claims, if it is to be replaced.
    uids: Option<Uids>,
}

/// A Kubernetes node and the pods on it; no node if it is gone.
type NodePods = Result<(Option<Node>, Vec<Pod>), ApiError>;

impl Rooms {
    /// Checks the due pods that the policy allows to be replaced or resized, and forgets all others. Checks
    /// pods that are not under way only until `end`; the next observation goes on with the rest.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        policy: &Policy,
        pods: &[(&Arc<PodFacts>, &restart::Pod)],
        owners: &Owners,
        ages: &Ages<'_>,
        end: Instant,
    ) {
        let asked = pods.iter().filter_map(|(facts, pod)| {
            let update = pod.update.as_ref().ok()?.as_ref()?;
            let needs_room = matches!(update.step, UpdateStep::Replace | UpdateStep::Resize);
            (needs_room && policy.update.contains(&update.step)).then_some((*facts, update))
        });
        let asked: Vec<(&Arc<PodFacts>, &PodUpdate)> = asked.collect();
        self.known.retain(|uid, _| asked.iter().any(|(facts, _)| facts.uid == *uid));
        let is_due = |(facts, update): &&(&Arc<PodFacts>, &PodUpdate)| {
            self.known.get(&facts.uid).is_none_or(|found| {
                let is_old = found.at.is_none_or(|at| at.elapsed() >= MAX_AGE);
                !found.is_of(update) || is_old || ages.is_under_way(&facts.uid)
            })
        };
        let mut due: Vec<(&Arc<PodFacts>, &PodUpdate)> =
            asked.iter().filter(is_due).copied().collect();
        let last = |facts: &PodFacts| self.known.get(&facts.uid).and_then(|found| found.at);
        due.sort_by_key(|(facts, _)| (!ages.is_under_way(&facts.uid), last(facts)));
        let end_of = |facts: &PodFacts| (!ages.is_under_way(&facts.uid)).then_some(end);

        let successors = Successors::ask(api, owners, ages, &due, end).await;
        self.nodes.forget_old();
        let nodes = &self.nodes;
        let ask = async |(facts, update): (&Arc<PodFacts>, &PodUpdate)| {
            let answers = match (update.step, successors.refused(ages, facts, update)) {
                (UpdateStep::Replace, Some(Some(why))) => Some(Answers::Undeletable(why)),
                (UpdateStep::Replace, Some(None)) => {
                    Box::pin(done_by(end_of(facts), answers(api, facts, nodes))).await
                }
                (UpdateStep::Replace, None) => None,
                _ => Some(Answers::Resized),
            };
            (Arc::clone(facts), update.clone(), answers)
        };
        let answers = join_limited(due.into_iter().map(ask).collect()).await;

        // Kubernetes nodes to read, each with the end of the time for it.
        let mut names: BTreeMap<&str, Option<Instant>> = BTreeMap::new();
        for (facts, _, answers) in &answers {
            if answers.as_ref().is_some_and(Answers::depends_on_node)
                && let Some(name) = node_of(facts)
            {
                let last = names.entry(name).or_insert(Some(end));
                *last = last.and(end_of(facts));
            }
        }
        let place = async |(name, end)| done_by(end, place(api, name)).await;
        let places = join_limited(names.into_iter().map(place).collect()).await;
        let places: BTreeMap<&str, NodePods> = places.into_iter().flatten().collect();
        for (facts, update, answers) in &answers {
            let found = answers
                .as_ref()
                .and_then(|answers| RoomCheck::of(facts, update, answers, owners, &places));
            let known = self.known.get(&facts.uid);
            if found.is_some() || known.is_none_or(|known| !known.is_of(update)) {
                let found = found.unwrap_or_else(|| RoomCheck::not_asked(facts, update));
                self.known.insert(facts.uid.clone(), found);
            }
        }
    }

    /// Reason why the apiserver would not delete this pod, or not take its replacement; `None` also for a pod
    /// that is not to be replaced.
    pub(super) fn undeletable(&self, uid: &str) -> Option<String> {
        self.known.get(uid)?.undeletable.clone()
    }

    /// Uids of this pod's volume claims, if it is to be replaced.
    pub(super) fn claim_uids(&self, uid: &str) -> Option<Uids> {
        self.known.get(uid)?.uids.clone()
    }

    /// Reason why the replacement of this pod would fit nowhere, or why there is no room for its new size;
    /// `None` also for a pod that gets neither.
    pub(super) fn why_not(&self, pod: &restart::Pod) -> Known<Option<String>> {
        if let Err(unknown) = &pod.update {
            return Err(unknown.clone());
        }
        self.known.get(&pod.uid).map_or(Ok(None), |found| found.why_not.clone())
    }
}

impl RoomCheck {
    /// The result of a check, if the Kubernetes node that it needs was read.
    fn of(
        pod: &PodFacts,
        update: &PodUpdate,
        answers: &Answers,
        owners: &Owners,
        places: &BTreeMap<&str, NodePods>,
    ) -> Option<Self> {
        let place = match node_of(pod).filter(|_| answers.depends_on_node()) {
            Some(name) => Some((name, places.get(name)?)),
            None => None,
        };
        let (undeletable, why_not, uids) = match answers {
            Answers::Resized => {
                let why = place.and_then(|(name, place)| why_not_larger(pod, update, name, place));
                (None, Ok(why), None)
            }
            Answers::Undeletable(why) => (Some(why.clone()), Ok(None), Some(Uids::new())),
            Answers::Bound(Err(error)) => (None, Err(unread(pod, error)), Some(Uids::new())),
            Answers::Bound(Ok(bound)) => {
                let why_not = match (&bound.leaving, place) {
                    (Some(claim), _) => Ok(Some(would_be_lost(pod, claim))),
                    (None, Some((name, place))) => why_not(pod, update, owners, name, place),
                    (None, None) => Ok(None),
                };
                (None, why_not, Some(bound.uids.clone()))
            }
        };
        let (at, revision, step) = (Some(Instant::now()), update.to.clone(), update.step);
        Some(Self { at, revision, step, undeletable, why_not, uids })
    }

    fn is_of(&self, update: &PodUpdate) -> bool {
        (&self.revision, self.step) == (&update.to, update.step)
    }

    fn not_asked(pod: &PodFacts, update: &PodUpdate) -> Self {
        let message = format!(
            "the room for the new pod of {} was not checked yet: the apiserver is slow to answer",
            pod.name
        );
        Self {
            at: None,
            revision: update.to.clone(),
            step: update.step,
            undeletable: None,
            why_not: Err(unknown(message)),
            uids: (update.step == UpdateStep::Replace).then(Uids::new),
        }
    }
}

/// The apiserver's answers about a pod.
enum Answers {
    /// No question: the pod stays, with another size.
    Resized,
    /// Reason why the apiserver would not delete the pod, or not take its replacement.
    Undeletable(String),
    Bound(Result<Bound, ApiError>),
}

impl Answers {
    /// True if the Kubernetes node decides.
    fn depends_on_node(&self) -> bool {
        match self {
            Self::Resized => true,
            Self::Bound(Ok(bound)) => bound.is_on_one_node && bound.leaving.is_none(),
            Self::Undeletable(_) | Self::Bound(Err(_)) => false,
        }
    }
}

async fn answers(api: &Apiserver, pod: &PodFacts, nodes: &Nodes) -> Answers {
    match undeletable(api, pod).await {
        Some(why) => Answers::Undeletable(why),
        None => Answers::Bound(bound(api, pod, nodes).await),
    }
}

/// Reason why the apiserver would not delete a pod. A missing answer counts, too: after a stop it would come
/// too late.
async fn undeletable(api: &Apiserver, pod: &PodFacts) -> Option<String> {
    let pods = api.objects::<Pod>(&pod.namespace).dry_run(true);
    match pods.delete(&pod.name, only(Some(&pod.uid), None)).await {
        Ok(()) => None,
        // The pod is gone by now, or another one has its name.
        Err(error) if error.is_not_found() || error.is_conflict() => None,
        Err(error) => Some(error.to_string()),
    }
}

fn node_of(pod: &PodFacts) -> Option<&str> {
    pod.live.as_ref()?.kubernetes_node.as_deref()
}

/// State of a pod's volume claims.
struct Bound {
    /// True if one of the volumes is on one node.
    is_on_one_node: bool,
    uids: Uids,
    /// A claim that is being deleted, and ends with the pod.
    leaving: Option<String>,
}

/// The Kubernetes nodes, listed once a volume asks for some of them: there may be thousands. The list is
/// `None` if they cannot be listed.
#[derive(Debug, Default)]
struct Nodes(OnceCell<(Instant, Option<Listed>)>);

type Listed = Arc<ObjectList<PartialObjectMeta<Node>>>;

impl Nodes {
    fn forget_old(&mut self) {
        if self.0.get().is_some_and(|(at, _)| at.elapsed() >= NODES_MAX_AGE) {
            *self = Self::default();
        }
    }

    /// True if this volume is on one node.
    async fn is_on_one(&self, api: &Apiserver, volume: PersistentVolume) -> bool {
        let affinity = volume.spec.and_then(|spec| spec.node_affinity);
        let Some(affinity) = affinity.and_then(|affinity| affinity.required) else { return false };
        // Without a list of the nodes, the names of labels decide.
        let nodes = match self.0.get() {
            Some((_, nodes)) => nodes.clone(),
            None => {
                // As the apiserver has them in memory.
                let params =
                    ListParams { resource_version: Some("0".into()), ..ListParams::default() };
                let nodes = api.everywhere::<Node>().list_metadata(&params).await;
                let nodes = nodes.ok().map(Arc::new);
                // The answer for another volume may be there by now.
                let _ = self.0.set((Instant::now(), nodes.clone()));
                nodes
            }
        };
        is_on_one_node(&affinity, nodes.as_ref().map(|nodes| nodes.items.as_slice()))
    }
}

async fn bound(api: &Apiserver, pod: &PodFacts, nodes: &Nodes) -> Result<Bound, ApiError> {
    let mut bound = Bound { is_on_one_node: false, uids: Uids::new(), leaving: None };
    for name in pod.live.iter().flat_map(|live| live.claims()) {
        let claim = api.objects::<PersistentVolumeClaim>(&pod.namespace).get(name).await?;
        bound.uids.extend(claim.metadata.uid.map(|uid| (name.to_owned(), uid)));
        if claim.metadata.deletion_timestamp.is_some() {
            bound.leaving.get_or_insert(name.to_owned());
        }
        if let Some(volume) = claim.spec.and_then(|spec| spec.volume_name) {
            match api.everywhere().get(&volume).await {
                Ok(volume) => bound.is_on_one_node |= nodes.is_on_one(api, volume).await,
                // The rights of one namespace do not reach volumes: then the scheduler decides.
                Err(error) if error.is_forbidden() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bound)
}

async fn place<'n>(api: &Apiserver, name: &'n str) -> (&'n str, NodePods) {
    let read = async {
        let node = api.everywhere::<Node>().find(name).await?;
        let on_node = ListParams::default().fields(&format!("spec.nodeName={name}"));
        Ok((node, api.everywhere::<Pod>().list(&on_node).await?.items))
    };
    (name, read.await)
}

/// Reason why the replacement of a pod would not fit on the Kubernetes node of its volume.
fn why_not(
    pod: &PodFacts,
    update: &PodUpdate,
    owners: &Owners,
    name: &str,
    place: &NodePods,
) -> Known<Option<String>> {
    let (node, there) = match place {
        Ok((node, there)) => (node, there),
        Err(error) => return Err(unread(pod, error)),
    };
    let why = match node {
        None => Some("the node is gone".to_owned()),
        Some(node) => {
            let Some(wanted) = wanted(pod, update, owners, there) else {
                let message = format!(
                    "{}: the resource requests of its new template were not read",
                    pod.name
                );
                return Err(unknown(message));
            };
            cordon(node, &wanted).or_else(|| {
                let evicts = wanted.preemption_policy.as_deref() != Some("Never");
                let priority = wanted.priority.filter(|_| evicts);
                let wanted = PodRequests { amounts: requests_of(&wanted), priority };
                lacking(node, there, &pod.uid, &wanted)
            })
        }
    };
    Ok(why.map(|why| {
        format!(
            "its volume is on the Kubernetes node {name}, and another pod in the place of {} would \
             not fit there: {why}",
            pod.name
        )
    }))
}

/// Spec of the replacement of a pod, if its template was read: the living one, with what admission has added,
/// in the new size, and with the containers of the new template.
fn wanted(pod: &PodFacts, update: &PodUpdate, owners: &Owners, there: &[Pod]) -> Option<PodSpec> {
    let itself = there.iter().find(|one| is_it(one, &pod.uid)).and_then(|one| one.spec.clone());
    if pod.owner.as_ref().is_some_and(|owner| owner.revision == update.to) {
        return itself;
    }
    let spec = |template: &Value| serde_json::from_value(template["spec"].clone()).ok();
    let new: PodSpec = owners.wanted_template(pod).and_then(spec)?;
    let old: Option<PodSpec> = owners.actual_template(pod).and_then(spec);
    let (Some(mut wanted), Some(old)) = (itself, old) else { return Some(new) };
    resize(&mut wanted, update)?;
    let has = |list: &[Container], name: &str| list.iter().any(|one| one.name == name);
    let change = |live: &mut Vec<Container>, old: &[Container], new: &[Container]| {
        live.retain(|one| !has(old, &one.name) || has(new, &one.name));
        live.extend(new.iter().filter(|one| !has(old, &one.name)).cloned());
    };
    let init = |spec: &PodSpec| spec.init_containers.clone().unwrap_or_default();
    change(&mut wanted.containers, &old.containers, &new.containers);
    change(wanted.init_containers.get_or_insert_default(), &init(&old), &init(&new));
    Some(wanted)
}

/// Reason why the Kubernetes node of a pod has no room for its new size. Without the right to read nodes the
/// resize is tried, and the kubelet refuses it. The kubelet evicts nobody for a resize.
fn why_not_larger(
    pod: &PodFacts,
    update: &PodUpdate,
    name: &str,
    place: &NodePods,
) -> Option<String> {
    let Ok((Some(node), there)) = place else { return None };
    let itself = there.iter().find(|one| is_it(one, &pod.uid))?;
    let mut wanted = itself.spec.clone()?;
    resize(&mut wanted, update)?;
    let wanted = PodRequests { amounts: requests_of(&wanted), priority: None };
    let why = lacking(node, there, &pod.uid, &wanted)?;
    Some(format!("the Kubernetes node {name} has no room for the new size of {}: {why}", pod.name))
}

fn would_be_lost(pod: &PodFacts, claim: &str) -> String {
    format!(
        "its volume claim {claim} is being deleted, which ends once the pod {} is gone: the data would be \
         lost with it. This cannot be undone: move the data to other nodes, or copy it",
        pod.name
    )
}

fn unread(pod: &PodFacts, error: &dyn Display) -> restart::Unknown {
    unknown(format!(
        "cannot find out whether another pod in the place of {} would fit where its volume is: {error}",
        pod.name
    ))
}
