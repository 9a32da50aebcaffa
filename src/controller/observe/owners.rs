//! The owners of pods: whether one is about to replace a pod, so that a restart in place would be for
//! nothing, and the changes from its template that a living pod takes.

mod templates;
#[cfg(test)]
mod update_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use stayput_kube_access::pod::Owner;
use stayput_kube_access::stateful_set::{NotComparable, Set, ordinal, replaces};
use stayput_pod_update::{environment, resized, runs_once};
use stayput_restart::annotation::ENVIRONMENT;
use stayput_restart::{Change, Known, LabelAhead, PodPatch, PodUpdate, Time};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::observe::owners::templates::{Key, Templates, UpdateError};
use crate::observe::snapshot::{Ages, unknown};
use crate::pods::{LiveFacts, PodFacts};

/// The StatefulSets that own pods, as they were read last.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// Time and result of the last read of each set, by name; `None` for a set that is gone.
    known: BTreeMap<String, (Instant, Result<Option<Set>, ApiError>)>,
    templates: Templates,
    /// True if edited templates are carried out.
    updates: bool,
    /// The revisions in labels that are ahead, and when they were first seen there, by the uid of the pod.
    labels: BTreeMap<String, (String, Time)>,
}

impl Owners {
    /// Reads the sets that are due and those of `must_read`, and the revisions of pods that are to be
    /// updated.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        pods: &[Arc<PodFacts>],
        ages: &Ages<'_>,
        must_read: &BTreeSet<String>,
    ) {
        let due: BTreeSet<&str> = pods
            .iter()
            .filter_map(|pod| Some((pod, pod.owner.as_ref()?.name.as_str())))
            .filter(|(pod, name)| {
                ages.is_over(&pod.uid, self.known.get(*name).map(|(read, _)| *read))
            })
            .map(|(_, name)| name)
            .chain(must_read.iter().map(String::as_str))
            .collect();
        let read = async |name: &str| {
            let found = api.objects(namespace).find(name).await;
            let answer = found.map(|set| set.as_ref().map(Set::of));
            (name.to_owned(), (Instant::now(), answer))
        };
        self.known.extend(join_limited(due.into_iter().map(read).collect()).await);
        self.updates = pods.iter().any(|pod| pod.live.is_some());
        let needed = pods.iter().filter(|pod| pod.live.is_some());
        let needed: BTreeSet<Key> = needed.flat_map(|pod| self.needed(pod)).collect();
        self.templates.read(api, namespace, &needed).await;
    }

    /// The revisions that the update of a pod, or its way back, is decided from.
    fn needed(&self, pod: &PodFacts) -> impl Iterator<Item = Key> {
        let ahead = pod.owner.as_ref().filter(|owner| owner.is_label_ahead());
        let ahead = ahead.into_iter().flat_map(|owner| {
            [&owner.label, &owner.revision].map(|name| (owner.uid.clone(), name.clone()))
        });
        self.pair(pod).into_iter().flatten().chain(ahead)
    }

    /// The actual and the wanted revision of a pod, if they differ.
    fn pair(&self, pod: &PodFacts) -> Option<[Key; 2]> {
        let owner = pod.owner.as_ref()?;
        let set = self.set(owner).ok()?;
        let wanted = set.wanted().ok()?;
        let has_both = !owner.revision.is_empty() && owner.revision != wanted;
        let key = |name: &str| (set.uid.clone(), name.to_owned());
        has_both.then(|| [key(&owner.revision), key(wanted)])
    }

    /// Reason to expect that the owner replaces the pod, or may do so.
    pub(super) fn outdated(&self, pod: &PodFacts) -> Option<String> {
        let owner = pod.owner.as_ref()?;
        match &self.known.get(&owner.name)?.1 {
            Ok(set) => replaces(set.as_ref()?, &pod.namespace, &pod.name, &owner.label),
            Err(error) => Some(format!(
                "cannot find out whether the owner of {} is about to replace it: {error}",
                pod.name
            )),
        }
    }

    /// Names of the StatefulSets of operators that want another revision than the labels of some of their pods
    /// have.
    pub(super) fn replaced_by_operators(&self, pods: &[Arc<PodFacts>]) -> BTreeSet<String> {
        let replaced = pods.iter().filter_map(|pod| {
            let owner = pod.owner.as_ref()?;
            let set = self.set(owner).ok().filter(|set| set.operator.is_some())?;
            let is_replaced = !owner.label.is_empty() && set.wanted().ok()? != owner.label;
            is_replaced.then(|| owner.name.clone())
        });
        replaced.collect()
    }

    /// Notes the labels that are ahead of their pods.
    pub(super) fn see_labels(&mut self, pods: &[Arc<PodFacts>], now: Time) {
        let before = std::mem::take(&mut self.labels);
        let ahead = pods.iter().filter_map(|pod| {
            let label = &pod.owner.as_ref().filter(|owner| owner.is_label_ahead())?.label;
            let same = before.get(&pod.uid).filter(|(seen, _)| seen == label);
            Some((pod.uid.clone(), (label.clone(), same.map_or(now, |(_, since)| *since))))
        });
        self.labels = ahead.collect();
    }

    /// The label of a pod that is ahead of it, and the way back.
    pub(super) fn ahead(&self, pod: &PodFacts) -> Option<LabelAhead> {
        let owner = pod.owner.as_ref().filter(|owner| owner.is_label_ahead())?;
        let live = pod.live.as_ref()?;
        let way = [owner.label.as_str(), owner.revision.as_str()];
        let back = self.set(owner).and_then(|set| self.templates.back(set, pod, live, way));
        let back = back.map_err(|error| unknown(format!("{}: {error}", pod.name)));
        let (revision, since) = self.labels.get(&pod.uid)?.clone();
        Some(LabelAhead { revision, since, back })
    }

    /// The update that brings the pod to its owner's template; `None` if it is made from that, or if no
    /// StatefulSet owns it. `data_paths`: data directories of its engine.
    pub(super) fn update(
        &mut self,
        pod: &PodFacts,
        manager_port: u16,
        data_paths: &[String],
    ) -> Known<Option<PodUpdate>> {
        let Some((owner, live)) = pod.owner.as_ref().zip(pod.live.as_ref()) else {
            return Ok(None);
        };
        let set = self.set(owner).map_err(|error| unknown(format!("{}: {error}", pod.name)))?;
        if !set.wants(ordinal(&pod.name)) {
            // The set is about to remove the pod.
            return Ok(None);
        }
        if let Some(reason) = set.is_not_ours(&pod.namespace) {
            return Err(unknown(reason));
        }
        let container = pod.engine_container(manager_port);
        let set = set.clone();
        let update = set.wanted().map_err(UpdateError::from).and_then(|wanted| {
            if owner.revision.is_empty() {
                return Err(NotComparable::NoRevision.into());
            }
            let pair = [owner.revision.as_str(), wanted];
            let differs = pair[0] != pair[1] || owner.label != wanted;
            let templates = &mut self.templates;
            let update = || templates.update(&set, pod, live, pair, container, data_paths);
            differs.then(update).transpose()
        });
        update.map_err(|error| unknown(format!("{}: {error}", pod.name)))
    }

    /// The template that the pod's owner wants, if it differs from the pod's own.
    pub(crate) fn wanted_template(&self, pod: &PodFacts) -> Option<&Value> {
        let [_, wanted] = self.pair(pod)?;
        self.templates.template(&wanted)
    }

    /// The template that the pod was made from, if its owner wants another one.
    pub(super) fn actual_template(&self, pod: &PodFacts) -> Option<&Value> {
        let [actual, _] = self.pair(pod)?;
        self.templates.template(&actual)
    }

    /// The set that a pod belongs to, if it was read.
    pub(super) fn set_of(&self, pod: &PodFacts) -> Option<&Set> {
        self.set(pod.owner.as_ref()?).ok()
    }

    /// Each set that pods belong to, or belonged to, by name; `None` for a set that is gone.
    pub(super) fn sets(&self) -> impl Iterator<Item = (&str, Result<Option<&Set>, &ApiError>)> {
        let known = self.known.iter();
        known.map(|(name, (_, set))| (name.as_str(), set.as_ref().map(Option::as_ref)))
    }

    /// Sets a StatefulSet as if it was read.
    #[cfg(test)]
    pub(super) fn put(&mut self, name: &str, set: Result<Option<Set>, ApiError>) {
        self.known.insert(name.to_owned(), (Instant::now(), set));
    }

    fn set(&self, owner: &Owner) -> Result<&Set, UpdateError> {
        let gone = || NotComparable::OwnerGone(owner.name.clone()).into();
        match self.known.get(&owner.name).map(|(_, set)| set) {
            Some(Ok(set)) => set.as_ref().filter(|set| set.uid == owner.uid).ok_or_else(gone),
            Some(Err(error)) => Err(UpdateError::Api(error.to_string())),
            None => Err(gone()),
        }
    }

    /// Versions of the sets as they were read last, by name; `None` if pods are not updated, so that an edit
    /// needs no answer before the sets are due.
    pub(crate) fn versions(&self) -> Option<BTreeMap<String, String>> {
        let sets = self.known.values().filter_map(|(_, set)| set.as_ref().ok()?.as_ref());
        let versions = sets.map(|set| (set.name.clone(), set.version.clone())).collect();
        self.updates.then_some(versions)
    }

    /// Reads every set again at the next observation.
    pub(crate) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Asks again if the apiserver can change sizes of pods.
    pub(super) fn forget_abilities(&mut self) {
        self.templates.forget_abilities();
    }

    /// Reads this set again at the next observation.
    pub(crate) fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }
}

/// The changes of labels and annotations that bring a pod from one template to another. Leaves out values that the
/// pod has already.
fn metadata([from, to]: [&Value; 2], pod: &PodFacts, live: &LiveFacts) -> PodPatch {
    PodPatch {
        labels: changes(&from["metadata"]["labels"], &to["metadata"]["labels"], &pod.labels),
        annotations: changes(
            &from["metadata"]["annotations"],
            &to["metadata"]["annotations"],
            &live.annotations,
        ),
        ..PodPatch::default()
    }
}

/// The changes that bring a pod from one template to another, beside those of its metadata. Leaves out sizes that the
/// pod has already, but not an image: an update that ended in the middle may have left it, and its container need not
/// run.
fn patch([from, to]: [&Value; 2], engine: &str, metadata: PodPatch, live: &LiveFacts) -> PodPatch {
    let mut patch = metadata;
    patch.variables = live.container(engine).and_then(|container| {
        let given = live.annotations.get(ENVIRONMENT);
        environment([from, to], engine, &container.variables, given)
    });
    for list in ["containers", "initContainers"] {
        for wanted in to["spec"][list].as_array().into_iter().flatten() {
            let name = wanted["name"].as_str().unwrap_or_default();
            let before = from["spec"][list].as_array().into_iter().flatten();
            let before = before.into_iter().find(|container| container["name"] == name);
            let (Some(before), Some(live)) = (before, live.container(name)) else { continue };
            if let Some(image) = wanted["image"].as_str()
                && before["image"] != wanted["image"]
            {
                patch.images.insert(name.to_owned(), change(&live.image, image));
            }
            // No request changes the size of a container that has run and ended.
            if runs_once(to, name) {
                continue;
            }
            let seen: Value = serde_json::from_str(&live.resources).unwrap_or_default();
            let resources = resized(&seen, &before["resources"], &wanted["resources"]);
            if resources != seen {
                let resources = resources.to_string();
                patch.resources.insert(name.to_owned(), change(&live.resources, &resources));
            }
        }
    }
    patch
}

fn change(seen: &str, wanted: &str) -> Change {
    Change { seen: Some(seen.to_owned()), wanted: Some(wanted.to_owned()) }
}

/// The keys that differ between the templates, where the pod does not have the wanted value yet.
fn changes(from: &Value, to: &Value, live: &BTreeMap<String, String>) -> BTreeMap<String, Change> {
    let keys = |map: &Value| -> BTreeSet<String> {
        map.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
    };
    keys(from)
        .union(&keys(to))
        .filter(|key| from.get(key) != to.get(key))
        .filter_map(|key| {
            let seen = live.get(key).cloned();
            let wanted = to.get(key).and_then(Value::as_str).map(str::to_owned);
            (seen != wanted).then(|| (key.clone(), Change { seen, wanted }))
        })
        .collect()
}
