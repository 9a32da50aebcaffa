//! The replacement of a pod: dry runs of its creation, which a quota, Pod Security or a policy may refuse,
//! and the uids of its volume claims: a claim that was deleted and made again has the same name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaim, Pod, PodSpec, PodTemplateSpec, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;
use stayput_kube_access::pod::REVISION_LABEL;
use stayput_pod_update::thousandths;
use stayput_restart::{Known, Ledger, Member, PodUpdate, UpdateStep};
use tokio::time::Instant;

use kube::core::Status;
use stayput_kube_access::apiserver::Objects;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::{done_by, join_limited};
use crate::observe::owners::Owners;
use crate::observe::snapshot::{Ages, unknown};
use crate::pods::PodFacts;

/// Scope of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// All pods of this owner that get this revision and are not under way; the first of them stands for
    /// them.
    Of { owner: Option<String>, revision: String },
    /// The pod with this uid: its turn has begun.
    Pod(String),
}

impl Key {
    fn of(ages: &Ages<'_>, pod: &PodFacts, update: &PodUpdate) -> Self {
        if ages.is_under_way(&pod.uid) {
            return Self::Pod(pod.uid.clone());
        }
        let owner = pod.owner.as_ref().map(|owner| owner.uid.clone());
        Self::Of { owner, revision: update.to.clone() }
    }
}

/// Reason why each replacement would be refused; `None` for one that would be taken.
#[derive(Debug, Default)]
pub(crate) struct Successors(BTreeMap<Key, Option<String>>);

impl Successors {
    /// Makes a dry run for one replacement of each owner and revision, and for those of pods under way.
    /// Starts the former only until `end`.
    pub(crate) async fn ask(
        api: &Apiserver,
        owners: &Owners,
        ages: &Ages<'_>,
        pods: &[(&Arc<PodFacts>, &PodUpdate)],
        end: Instant,
    ) -> Self {
        let mut due: BTreeMap<Key, (&Arc<PodFacts>, &PodUpdate)> = BTreeMap::new();
        for (pod, update) in pods.iter().filter(|(_, update)| update.step == UpdateStep::Replace) {
            due.entry(Key::of(ages, pod, update)).or_insert((pod, update));
        }
        let ask = async |(key, (pod, update)): (Key, (&Arc<PodFacts>, &PodUpdate))| {
            let end = matches!(key, Key::Of { .. }).then_some(end);
            done_by(end, why_refused(api, owners, pod, update)).await.map(|why| (key, why))
        };
        let answers = join_limited(due.into_iter().map(ask).collect()).await;
        Self(answers.into_iter().flatten().collect())
    }

    /// Reason why the replacement of this pod would be refused, if there was a dry run for it.
    pub(crate) fn refused(
        &self,
        ages: &Ages<'_>,
        pod: &PodFacts,
        update: &PodUpdate,
    ) -> Option<Option<String>> {
        self.0.get(&Key::of(ages, pod, update)).cloned()
    }
}

/// Reason why the apiserver would not take the replacement of a pod. A missing answer counts, too: after the
/// deletion it would come too late.
async fn why_refused(
    api: &Apiserver,
    owners: &Owners,
    pod: &PodFacts,
    update: &PodUpdate,
) -> Option<String> {
    let pods = api.objects::<Pod>(&pod.namespace);
    let there = match pods.get(&pod.name).await {
        Ok(there) => there,
        // The pod is gone: the next look has another question.
        Err(error) if error.is_not_found() => return None,
        Err(error) => return Some(sentence(pod, &error)),
    };
    let is_same_template = pod.owner.as_ref().is_some_and(|owner| owner.revision == update.to);
    let (old, new) = if is_same_template {
        (None, None)
    } else {
        match owners.wanted_template(pod).and_then(read) {
            None => return Some(sentence(pod, &"its new template was not read")),
            new => (owners.actual_template(pod).and_then(read), new),
        }
    };
    let requests_more = match (old.and_then(|old| old.spec), &new) {
        (Some(old), Some(PodTemplateSpec { spec: Some(new), .. })) => requests_more(&old, new),
        _ => !is_same_template,
    };
    let successor = successor(there, new, &update.to);
    match try_to_create(&pods.dry_run(true), &successor).await {
        Ok(()) => None,
        Err(error) if is_of_quota(&error) && !requests_more => None,
        Err(error) => Some(sentence(pod, &error)),
    }
}

/// Dry run of creating this pod. The apiserver reports that the name is taken only after everything else that
/// could refuse the pod: that answer counts as success.
async fn try_to_create(pods: &Objects<Pod>, pod: &Pod) -> Result<(), ApiError> {
    let call = pods.about("create").named(pod.metadata.name.as_deref().unwrap_or_default());
    let create = async {
        match pods.api().create(&pods.post_params(), pod).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            done => done.map(drop),
        }
    };
    pods.call(call, create).await
}

fn sentence(pod: &PodFacts, why: &dyn fmt::Display) -> String {
    format!("the apiserver would not take another pod in the place of {}: {why}", pod.name)
}

fn read(template: &Value) -> Option<PodTemplateSpec> {
    serde_json::from_value(template.clone()).ok()
}

/// True if a quota refused the pod. It counts the pod that goes beside the one that comes: if the new one
/// requests no more, there is room for it once the other has gone.
fn is_of_quota(error: &ApiError) -> bool {
    let is_it = |status: &Status| status.code == 403 && status.message.contains("exceeded quota");
    error.refusal().is_some_and(is_it)
}

/// The pod that a StatefulSet makes from the template in the place of this one; without a template, from the
/// one that this pod was made from.
fn successor(there: Pod, template: Option<PodTemplateSpec>, revision: &str) -> Pod {
    let ObjectMeta { name, namespace, labels, annotations, owner_references, .. } = there.metadata;
    let live = there.spec.unwrap_or_default();
    let had = labels.unwrap_or_default();
    let (mut labels, annotations, spec) = match template {
        Some(PodTemplateSpec { metadata, spec }) => {
            let metadata = metadata.unwrap_or_default();
            let mut labels = metadata.labels.unwrap_or_default();
            let own = had.into_iter().filter(|(key, _)| OF_STATEFUL_SETS.contains(&key.as_str()));
            labels.extend(own);
            (labels, metadata.annotations, spec.unwrap_or_default())
        }
        None => (had, annotations, live.clone()),
    };
    labels.insert(REVISION_LABEL.to_owned(), revision.to_owned());
    let mut volumes = spec.volumes.unwrap_or_default();
    for volume in live.volumes.into_iter().flatten() {
        let is_claim = volume.persistent_volume_claim.is_some();
        if is_claim && volumes.iter().all(|one| one.name != volume.name) {
            volumes.push(volume);
        }
    }
    // With this field, some apiservers ask for a right to change the owner.
    let owner = |owner| OwnerReference { block_owner_deletion: None, ..owner };
    let owners = owner_references.into_iter().flatten().map(owner).collect();
    Pod {
        metadata: ObjectMeta {
            name,
            namespace,
            labels: Some(labels),
            annotations,
            owner_references: Some(owners),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            volumes: Some(volumes),
            hostname: live.hostname,
            subdomain: live.subdomain,
            node_name: None,
            ephemeral_containers: None,
            ..spec
        }),
        status: None,
    }
}

/// Labels that the controller of StatefulSets gives a pod, beside that of its revision.
const OF_STATEFUL_SETS: [&str; 2] =
    ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"];

/// True if a container of the new template requests more than in the old one, or has a higher limit.
fn requests_more(old: &PodSpec, new: &PodSpec) -> bool {
    let all = |spec: &PodSpec| -> Vec<Container> {
        let init = spec.init_containers.iter().flatten();
        spec.containers.iter().chain(init).cloned().collect()
    };
    let old = all(old);
    all(new).iter().any(|container| {
        let before = old.iter().find(|one| one.name == container.name);
        before.is_none_or(|before| {
            let of = |container: &Container| container.resources.clone().unwrap_or_default();
            let (before, now) = (of(before), of(container));
            let ResourceRequirements { limits, requests, .. } = now;
            is_more(limits, before.limits) || is_more(requests, before.requests)
        })
    })
}

type Amounts = Option<BTreeMap<String, Quantity>>;

fn is_more(now: Amounts, before: Amounts) -> bool {
    let before = before.unwrap_or_default();
    now.into_iter().flatten().any(|(name, amount)| {
        let amount = thousandths(&amount.0);
        let before = before.get(&name).and_then(|before| thousandths(&before.0));
        amount > before
    })
}

/// Uids of volume claims by name; leaves out those that we may not read.
pub(super) type Uids = BTreeMap<String, String>;

/// The claims of replacements, by uid of the pod. They are read once the pod is on a Kubernetes node: from
/// then on the claims stay as long as the pod.
#[derive(Debug, Default)]
pub(super) struct Claims {
    known: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    uids: Known<Uids>,
    /// True if the pod was on a Kubernetes node before the uids were read.
    will_stay: bool,
}

impl Claims {
    /// Reads the claims of the replacements of members under way, and forgets all others.
    pub(super) async fn read(&mut self, api: &Apiserver, ledger: &Ledger, pods: &[Arc<PodFacts>]) {
        let replaced: Vec<&Member> = ledger.under_way().filter(is_replaced).collect();
        let has_come = |pod: &&Arc<PodFacts>| {
            replaced.iter().any(|member| member.pod == pod.name && member.pod_uid != pod.uid)
        };
        let come: Vec<&Arc<PodFacts>> = pods.iter().filter(has_come).collect();
        self.known.retain(|uid, seen| {
            seen.will_stay && seen.uids.is_ok() && come.iter().any(|pod| pod.uid == *uid)
        });
        let due = come.iter().filter(|pod| !self.known.contains_key(&pod.uid));
        let read = async |pod: &PodFacts| {
            let node = pod.live.as_ref().and_then(|live| live.kubernetes_node.as_ref());
            let seen = Seen { uids: uids(api, pod).await, will_stay: node.is_some() };
            (pod.uid.clone(), seen)
        };
        let found = join_limited(due.map(|pod| read(pod)).collect()).await;
        self.known.extend(found);
    }

    /// The claims of this pod; empty for a pod that is no replacement.
    pub(super) fn of(&self, uid: &str) -> Known<Uids> {
        self.known.get(uid).map_or_else(|| Ok(Uids::new()), |seen| seen.uids.clone())
    }
}

fn is_replaced(member: &&Member) -> bool {
    member.update.as_ref().is_some_and(|fixed| fixed.update.step == UpdateStep::Replace)
}

async fn uids(api: &Apiserver, pod: &PodFacts) -> Known<Uids> {
    let mut uids = Uids::new();
    for name in pod.live.iter().flat_map(|live| live.claims()) {
        match api.objects::<PersistentVolumeClaim>(&pod.namespace).get(name).await {
            Ok(claim) => uids.extend(claim.metadata.uid.map(|uid| (name.to_owned(), uid))),
            Err(error) if error.is_forbidden() => {}
            Err(error) => {
                return Err(unknown(format!("the volume claim {name} cannot be read: {error}")));
            }
        }
    }
    Ok(uids)
}

#[cfg(test)]
mod tests;
