//! The Secrets and ConfigMaps that containers, and init containers, read when they are started. Keeps only
//! digests of their contents.

mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stayput_pod_update::{
    Compared, Content, Difference, Other, Source, UpdateStep, compare_content,
    without_another_container,
};
use tokio::time::Instant;

use super::ages::Ages;
use super::objects::Object;
use crate::apiserver::Apiserver;
use crate::concurrency::join_limited;
use crate::pods::{PodFacts, others};
use seen::Seen;
use stayput_restart::{Change, Known, PodUpdate, Policy, annotation};

/// Limit of the differences that a message shows.
const SHOWN: usize = 5;

/// Cached state of the objects.
#[derive(Debug, Default)]
pub(super) struct ContentReader {
    /// Time of the last read of each object, and its state, if it was ever read.
    known: BTreeMap<Source, (Instant, Option<Seen>)>,
}

impl ContentReader {
    /// Reads the objects that are due, and forgets those that no pod uses any more.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        pods: &[Arc<PodFacts>],
        ages: &Ages<'_>,
    ) {
        let mut used = BTreeSet::new();
        let mut due = BTreeSet::new();
        for pod in pods {
            for one in pod.starts.iter().flat_map(|start| &start.uses) {
                let read = self.known.get(&one.source).map(|(read, _)| *read);
                if !due.contains(&one.source) && ages.is_over(&pod.uid, read) {
                    due.insert(one.source.clone());
                }
                if !used.contains(&one.source) {
                    used.insert(one.source.clone());
                }
            }
        }
        self.known.retain(|source, _| used.contains(source));
        let read = async |source: Source| {
            let seen = match Object::read(api, namespace, &source).await {
                Ok(object) => object.as_ref().map(Seen::of),
                Err(error) => {
                    tracing::warn!("{source}, which pods use, cannot be read: {error}");
                    None
                }
            };
            (source, seen)
        };
        for (source, seen) in join_limited(due.into_iter().map(read).collect()).await {
            let before = self.known.remove(&source).and_then(|(_, before)| before);
            let seen = match seen {
                Some(seen) => Some(seen.after(before)),
                None => before.map(Seen::gone),
            };
            self.known.insert(source, (Instant::now(), seen));
        }
    }

    /// The pod's update, with the changed content that its container, or the pod, was started with; or with
    /// the missing note of that content.
    pub(super) fn added_to(
        &self,
        update: Known<Option<PodUpdate>>,
        pod: &PodFacts,
        container: &str,
        policy: &Policy,
    ) -> Known<Option<PodUpdate>> {
        let start = pod.starts.iter().find(|start| start.container == container);
        let (Some(start), Some(owner)) = (start, &pod.owner) else { return update };
        let (Ok(known), Some(started)) = (&update, start.started) else { return update };
        let others: Vec<Other> = others(&pod.starts, container).collect();
        if start.uses.is_empty() && others.is_empty() {
            return update;
        }
        let mut wanted = Content::default();
        let mut ages = BTreeMap::new();
        for used in start.uses.iter().chain(others.iter().flat_map(|other| &other.uses)) {
            let seen = self.known.get(&used.source).and_then(|(_, seen)| seen.as_ref());
            // An object that is absent, or cannot be read, is unknown.
            if let Some(seen) = seen.filter(|seen| seen.is_there) {
                wanted.add(used.source.clone(), seen.digests.clone(), seen.ignore.clone());
                wanted.add_earlier(used.source.clone(), seen.earlier.clone());
                ages.insert(used.source.clone(), seen.age);
            }
        }
        let noted = pod.annotations.get(annotation::CONTENT);
        let noted = noted.map(String::as_str);
        let mut compared = compare_content(&start.uses, &others, &wanted, &ages, started, noted);
        let has_another = known.as_ref().is_some_and(PodUpdate::makes_a_container);
        if !start.is_made_anew && !has_another {
            for difference in &mut compared.differences {
                difference.step = without_another_container(difference.step);
            }
        }
        let may_replace = policy.update.contains(&UpdateStep::Replace);
        Ok(merged(known.clone(), compared, noted, &owner.revision, may_replace))
    }
}

/// Merges the update of the template and that of the content into one stop.
fn merged(
    update: Option<PodUpdate>,
    compared: Compared,
    noted: Option<&str>,
    revision: &str,
    may_replace: bool,
) -> Option<PodUpdate> {
    let Compared { differences, now, next, anew } = compared;
    let of_template = update.as_ref().map(|update| update.step);
    let needs_pod = |difference: &Difference| difference.step == UpdateStep::Replace;
    let is_first = !may_replace
        && (of_template > Some(UpdateStep::None)
            || now.is_some()
            || differences.iter().any(|difference| !needs_pod(difference)));
    // If no pod may be replaced, changes that need a replacement do not hold the others up.
    let (held_back, differences): (Vec<Difference>, Vec<Difference>) =
        differences.into_iter().partition(|difference| is_first && needs_pod(difference));
    let own = differences.iter().map(|difference| difference.step).max();
    let needs_container =
        differences.iter().any(|difference| difference.step == UpdateStep::Container);
    let makes_a_container = update.as_ref().is_some_and(PodUpdate::makes_a_container);
    let (step, note) = match (own, of_template) {
        // The next look notes the content that the replacement was started with.
        (own, Some(UpdateStep::Replace | UpdateStep::Move)) => (own, None),
        // The note is not written to this pod, but tells one change from the next.
        (Some(UpdateStep::Replace), _) => (own, anew),
        // A new container, for whatever reason, is started with the wanted content.
        (own, Some(UpdateStep::Container)) => (own, next),
        (own, Some(UpdateStep::Resize)) if makes_a_container || needs_container => (own, next),
        (own, Some(UpdateStep::Resize)) => (own, now),
        (Some(step), None | Some(UpdateStep::None | UpdateStep::Relabel | UpdateStep::Restart)) => {
            (Some(step), next)
        }
        (None, None | Some(UpdateStep::None | UpdateStep::Relabel)) => {
            (now.is_some().then_some(UpdateStep::Relabel), now)
        }
        (None, Some(UpdateStep::Restart)) => (None, now),
    };
    if step.is_none() && note.is_none() && held_back.is_empty() {
        return update;
    }
    let mut update = update.unwrap_or_else(|| PodUpdate {
        from: revision.to_owned(),
        to: revision.to_owned(),
        step: UpdateStep::None,
        because: vec![],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: stayput_restart::PodPatch::default(),
    });
    let because = differences.into_iter().map(|difference| difference.field);
    if own >= Some(update.step) {
        update.because.splice(0..0, because);
    } else {
        update.because.extend(because);
    }
    update.because.extend(held_back.into_iter().map(|difference| difference.field));
    update.because.truncate(SHOWN);
    update.step = update.step.max(step.unwrap_or(UpdateStep::None));
    update.new_container |= needs_container;
    if let Some(note) = note.filter(|note| Some(note.as_str()) != noted) {
        let change = Change { seen: noted.map(str::to_owned), wanted: Some(note) };
        update.patch.annotations.insert(annotation::CONTENT.to_owned(), change);
    }
    Some(update)
}
