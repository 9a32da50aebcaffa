//! Labels and annotations of a pod as its owner wants them. With them goes the label of the revision,
//! by which the owner counts the pod as updated: so they come last.

use std::collections::BTreeMap;

use crate::{Action, Change, LivePod, Pod, PodUpdate};

/// The label of a pod that names the revision of its owner that it was made from.
pub(crate) const REVISION: &str = "controller-revision-hash";

/// The patch that makes a pod one of the revision wanted; none if it is.
pub(in crate::flow) fn relabel(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Option<Action> {
    if live.revision == update.to {
        return None;
    }
    let differs = |changes: &BTreeMap<String, Change>| -> BTreeMap<String, Change> {
        let differing = changes.iter().filter(|(_, change)| change.seen != change.wanted);
        differing.map(|(key, change)| (key.clone(), change.clone())).collect()
    };
    let mut labels = differs(&update.patch.labels);
    let seen = Some(live.revision.clone()).filter(|revision| !revision.is_empty());
    labels.insert(REVISION.to_owned(), Change { seen, wanted: Some(update.to.clone()) });
    let annotations = differs(&update.patch.annotations);
    Some(Action::PatchMetadata { uid: pod.uid.clone(), labels, annotations })
}
