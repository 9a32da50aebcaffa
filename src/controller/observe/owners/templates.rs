//! The revisions of StatefulSets, and the updates of pods from one to another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use stayput_pod_update::{Abilities, Update, UpdateStep, container_settings};
use stayput_restart::{GivenSettings, PodPatch, PodUpdate};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::observe::owners::{metadata, patch};
use crate::pods::{LiveFacts, PodFacts, is_data_elsewhere};
use stayput_kube_access::stateful_set::{NotComparable, Revision, Set, update};

/// Age at which a missing ability of the apiserver is checked again: it may be upgraded.
const INABILITY_MAX_AGE: Duration = Duration::from_secs(300);
/// Limit of the fields that a message names.
const MAX_FIELDS: usize = 4;

/// Uid of a StatefulSet, and name of one of its revisions: the content of a revision never changes.
pub(super) type Key = (String, String);

/// Reason why the update of a pod is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("{0}")]
    NotComparable(#[from] NotComparable),
    #[error("the revision {0} is not read yet")]
    NotRead(String),
    #[error("cannot find out what its template lacks: {0}")]
    Api(String),
}

/// Input of a comparison: uid of a StatefulSet, two of its revisions, name of the engine's container, and the
/// engine's data directories.
type Compared = (String, [String; 2], String, Vec<String>);

/// The revisions that were read to compare templates, and the results.
#[derive(Debug, Default)]
pub(super) struct Templates {
    /// Revisions as they were read; `None` for one that is absent.
    revisions: BTreeMap<Key, Result<Option<Revision>, ApiError>>,
    /// Abilities of the apiserver, and the time of its answer.
    abilities: Option<(Instant, Result<Abilities, ApiError>)>,
    compared: BTreeMap<Compared, Fields>,
}

impl Templates {
    /// Reads those of these revisions that are not cached, and forgets all others.
    pub(super) async fn read(&mut self, api: &Apiserver, namespace: &str, needed: &BTreeSet<Key>) {
        self.revisions
            .retain(|key, revision| needed.contains(key) && matches!(revision, Ok(Some(_))));
        self.compared.retain(|(uid, pair, ..), _| {
            pair.iter().all(|name| needed.contains(&(uid.clone(), name.clone())))
        });
        let missing = needed.iter().filter(|key| !self.revisions.contains_key(*key));
        let read = async |key: &Key| {
            let found = api.objects(namespace).find(&key.1).await;
            let answer = found.map(|revision| revision.as_ref().map(Revision::of));
            (key.clone(), answer)
        };
        self.revisions.extend(join_limited(missing.map(read).collect()).await);
        if !needed.is_empty() && self.are_abilities_due() {
            let resize = api.serves_resize().await;
            let before = self.abilities.take().and_then(|(_, abilities)| abilities.ok());
            let abilities = match (resize.map(|resize| Abilities { resize }), before) {
                (Err(_), Some(before)) => Ok(before),
                (answer, _) => answer,
            };
            if abilities.as_ref().ok() != before.as_ref() {
                self.compared.clear();
            }
            self.abilities = Some((Instant::now(), abilities));
        }
    }

    fn are_abilities_due(&self) -> bool {
        match &self.abilities {
            Some((_, Ok(Abilities { resize: true }))) => false,
            Some((read, Ok(Abilities { resize: false }))) => read.elapsed() >= INABILITY_MAX_AGE,
            Some((_, Err(_))) | None => true,
        }
    }

    /// Reads the abilities of the apiserver again.
    pub(super) fn forget_abilities(&mut self) {
        self.abilities = None;
    }

    /// The update that brings the pod from the revision `from` to `to`. Labels and annotations come from the
    /// revision in the pod's label.
    pub(super) fn update(
        &mut self,
        set: &Set,
        pod: &PodFacts,
        live: &LiveFacts,
        [from, to]: [&str; 2],
        engine_container: &str,
        data_paths: &[String],
    ) -> Result<PodUpdate, UpdateError> {
        let abilities = match &self.abilities {
            Some((_, Ok(abilities))) => *abilities,
            Some((_, Err(error))) => return Err(UpdateError::Api(error.to_string())),
            None => return Err(UpdateError::NotRead(to.to_owned())),
        };
        let [actual, wanted] = [self.revision(set, from)?, self.revision(set, to)?];
        let labelled = match &pod.owner {
            Some(owner) if owner.is_label_ahead() => self.revision(set, &owner.label)?,
            Some(_) | None => actual,
        };
        let pair = [from.to_owned(), to.to_owned()];
        let key = (set.uid.clone(), pair, engine_container.to_owned(), data_paths.to_vec());
        let compared = match self.compared.get(&key) {
            Some(known) => known.clone(),
            None => fields([actual, wanted], engine_container, data_paths, abilities),
        };
        let metadata = metadata([&labelled.template, &wanted.template], pod, live);
        let templates = [&actual.template, &wanted.template];
        let patch = patch(templates, engine_container, metadata, live);
        self.compared.entry(key).or_insert_with(|| compared.clone());
        let Fields { step, mut because, new_container, data_elsewhere, settings } = compared;
        if from == to {
            let label = pod.owner.as_ref().map_or("", |owner| &owner.label);
            because.push(format!("its label names {label}"));
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        // Its label may be the only difference.
        let step = step.max(UpdateStep::Relabel);
        Ok(PodUpdate { from, to, step, because, new_container, data_elsewhere, settings, patch })
    }

    /// The metadata of a pod on its way back from the revision in its label to the one that it was made from. A
    /// revision that is no longer kept changes nothing.
    pub(super) fn back(
        &self,
        set: &Set,
        pod: &PodFacts,
        live: &LiveFacts,
        [label, actual]: [&str; 2],
    ) -> Result<PodPatch, UpdateError> {
        match [self.revision(set, label), self.revision(set, actual)] {
            [Ok(label), Ok(actual)] => Ok(metadata([&label.template, &actual.template], pod, live)),
            [Err(UpdateError::NotComparable(_)), _] | [_, Err(UpdateError::NotComparable(_))] => {
                Ok(PodPatch::default())
            }
            [Err(error), _] | [_, Err(error)] => Err(error),
        }
    }

    /// The template of a revision, if that was read.
    pub(super) fn template(&self, key: &Key) -> Option<&Value> {
        Some(&self.revisions.get(key)?.as_ref().ok()?.as_ref()?.template)
    }

    /// Sets a revision as if it was read, on an apiserver that can resize pods.
    #[cfg(test)]
    pub(super) fn put(&mut self, key: Key, revision: Result<Option<Revision>, ApiError>) {
        self.revisions.insert(key, revision);
        self.abilities = Some((Instant::now(), Ok(Abilities { resize: true })));
    }

    fn revision(&self, set: &Set, name: &str) -> Result<&Revision, UpdateError> {
        match self.revisions.get(&(set.uid.clone(), name.to_owned())) {
            Some(Ok(Some(revision))) => Ok(revision),
            Some(Ok(None)) => Err(NotComparable::RevisionGone(name.to_owned()).into()),
            Some(Err(error)) => Err(UpdateError::Api(error.to_string())),
            None => Err(UpdateError::NotRead(name.to_owned())),
        }
    }
}

/// Result of comparing two templates.
#[derive(Debug, Clone)]
struct Fields {
    step: UpdateStep,
    /// The fields that need this step, for people.
    because: Vec<String>,
    /// True if a field needs another container of the manager.
    new_container: bool,
    /// True if the engine would look for its data at another place.
    data_elsewhere: bool,
    /// Settings of both templates, if they differ: some need all nodes at once.
    settings: Option<Box<GivenSettings>>,
}

/// Compares two revisions.
fn fields(
    pair: [&Revision; 2],
    engine_container: &str,
    data_paths: &[String],
    abilities: Abilities,
) -> Fields {
    let Update { step, because } = update(pair, engine_container, abilities);
    let decisive: Vec<_> = because.iter().filter(|each| each.step == step).collect();
    let mut fields: Vec<String> =
        decisive.iter().take(MAX_FIELDS).map(|difference| sentence(difference)).collect();
    if decisive.len() > MAX_FIELDS {
        fields.push(format!("and {} more", decisive.len() - MAX_FIELDS));
    }
    let new_container = because.iter().any(|each| each.step == UpdateStep::Container);
    let templates = pair.map(|one| &one.template);
    let data_elsewhere = is_data_elsewhere(templates, engine_container, data_paths);
    let [from, to] = templates.map(|template| container_settings(template, engine_container));
    let settings = (from != to).then(|| Box::new(GivenSettings { from, to }));
    Fields { step, because: fields, new_container, data_elsewhere, settings }
}

fn sentence(difference: &stayput_pod_update::Difference) -> String {
    let stayput_pod_update::Difference { field, from, to, .. } = difference;
    match (from, to) {
        (Some(from), Some(to)) => format!("{field}: {from} -> {to}"),
        (None, Some(to)) => format!("{field}: {to} is new"),
        (Some(from), None) => format!("{field}: {from} is gone"),
        (None, None) => field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves UPDATE-6
    fn that_sizes_cannot_be_changed_is_believed_for_five_minutes() {
        let is_due = |resize, age: Duration| {
            let read = Instant::now().checked_sub(age).expect("the machine runs long enough");
            let abilities = Some((read, Ok(Abilities { resize })));
            Templates { abilities, ..Templates::default() }.are_abilities_due()
        };
        assert!(Templates::default().are_abilities_due());
        assert!(!is_due(true, INABILITY_MAX_AGE) && is_due(false, INABILITY_MAX_AGE));
        assert!(!is_due(false, INABILITY_MAX_AGE - Duration::from_secs(1)));
    }
}
