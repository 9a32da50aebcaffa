//! Labels and annotations of a pod as its owner wants them. With them goes the label of the revision,
//! by which the owner counts the pod as updated: so they come last.

use std::collections::BTreeMap;

use crate::annotation::CONTENT;
use crate::plan::REVISION;
use crate::{Action, Change, LivePod, Pod, PodUpdate};

/// The patch that labels a pod with the wanted revision and notes what its container was started with, unless
/// the pod has both.
pub(crate) fn relabel(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Option<Action> {
    let uid = pod.uid.clone();
    let note = note(pod, update);
    if live.revision == update.to {
        // All other labels and annotations have come with this label.
        let annotations = BTreeMap::from([(CONTENT.to_owned(), note?)]);
        let labels = BTreeMap::new();
        return Some(Action::PatchMetadata { uid, labels, annotations });
    }
    let differs = |changes: &BTreeMap<String, Change>| -> BTreeMap<String, Change> {
        let differing = changes.iter().filter(|(_, change)| change.seen != change.wanted);
        differing.map(|(key, change)| (key.clone(), change.clone())).collect()
    };
    let mut labels = differs(&update.patch.labels);
    let seen = Some(live.revision.clone()).filter(|revision| !revision.is_empty());
    labels.insert(REVISION.to_owned(), Change { seen, wanted: Some(update.to.clone()) });
    let mut annotations = differs(&update.patch.annotations);
    annotations.remove(CONTENT);
    annotations.extend(note.map(|note| (CONTENT.to_owned(), note)));
    Some(Action::PatchMetadata { uid, labels, annotations })
}

/// The note that is still to be written, over the one that the pod has now.
fn note(pod: &Pod, update: &PodUpdate) -> Option<Change> {
    let wanted = update.patch.annotations.get(CONTENT)?.wanted.clone();
    let seen = pod.annotations.get(CONTENT).cloned();
    (seen != wanted).then_some(Change { seen, wanted })
}
