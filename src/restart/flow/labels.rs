//! The label of a pod that names its revision. It follows the pod, and is the last change of an update. Operators of
//! engines delete a pod with an old label, above all while it is not ready: of their pods the label goes ahead,
//! before any stop, and an annotation names the revision that the pod was made from.

use std::collections::BTreeMap;

use crate::annotation::{ACTUAL_REVISION, CONTENT};
use crate::changes::{Changes, Check, refuse};
use crate::flow::begin::missing_finalizer;
use crate::flow::member::update::frozen_update::is_allowed;
use crate::plan::REVISION_LABEL;
use crate::{
    Action, Change, Code, Context, LabelAhead, Ledger, LivePod, Operator, OperatorKind, Pod,
    PodUpdate, UpdateStep,
};

/// Moves the labels of operators' pods: ahead when their template changes, all in one plan; and back when nobody
/// brings the pod to the revision in its label. The finalizer comes before: a deleted SearchCluster leaves no
/// label ahead.
pub(crate) fn move_labels(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    if !cluster.has_status || !cluster.overlaps.is_empty() {
        return Changes::default();
    }
    let pods = context.index.pods().filter(|pod| !pod.terminating);
    let moves: Vec<Action> = pods.filter_map(|pod| move_label(context, ledger, pod)).collect();
    let missing = missing_finalizer(context).filter(|_| !cluster.deleting && !moves.is_empty());
    let actions = missing.map_or(moves, |finalizer| vec![finalizer]);
    Changes { actions, ..Changes::default() }
}

/// True if labels are ahead, or are to be: they go back before the SearchCluster does.
pub(crate) fn are_ahead(context: &Context<'_>, ledger: &Ledger) -> bool {
    let mut pods = context.index.pods();
    pods.any(|pod| {
        pod.ahead.is_some() || matches!(Place::of(context, ledger, pod), Place::Ahead(_))
    })
}

fn move_label(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> Option<Action> {
    let live = pod.live.as_ref()?;
    match Place::of(context, ledger, pod) {
        Place::Stays => None,
        Place::Ahead(update) => {
            (label(pod, live) != update.to).then(|| go_ahead(pod, live, update))
        }
        Place::Back => go_back(pod, live, pod.ahead.as_ref()?),
    }
}

/// Where the label of a pod belongs.
enum Place<'p> {
    /// At the revision that this update brings.
    Ahead(&'p PodUpdate),
    /// At the revision that the pod was made from.
    Back,
    /// Where it is.
    Stays,
}

impl<'p> Place<'p> {
    fn of(context: &Context<'_>, ledger: &Ledger, pod: &'p Pod) -> Self {
        if pod.operator.is_none() && pod.ahead.is_none() {
            return Self::Stays;
        }
        let cluster = &context.snapshot.cluster;
        let is_over = cluster.deleting || context.policy.update.is_empty();
        let is_busy = || !ledger.is_released(&pod.uid);
        let back_unless_busy = || if is_busy() { Self::Stays } else { Self::Back };
        let Ok(Some(update)) = &pod.update else {
            return if is_over { back_unless_busy() } else { Self::Stays };
        };
        if is_over || !is_allowed(context.policy, pod, update) {
            return back_unless_busy();
        }
        match update.step {
            _ if goes_ahead(pod, update) => Self::Ahead(update),
            // Otherwise this comes as the pod's only change, and at once. Until a cluster is resumed, and in a turn,
            // only the label keeps the operator from deleting the pod.
            UpdateStep::Relabel if pod.operator.is_some() && (cluster.paused || is_busy()) => {
                Self::Ahead(update)
            }
            UpdateStep::Replace | UpdateStep::Move => back_unless_busy(),
            UpdateStep::None
            | UpdateStep::Relabel
            | UpdateStep::Restart
            | UpdateStep::Container
            | UpdateStep::Resize => Self::Stays,
        }
    }
}

/// True if the label of the pod goes ahead of this update.
fn goes_ahead(pod: &Pod, update: &PodUpdate) -> bool {
    let keeps_pod = (UpdateStep::Restart..UpdateStep::Replace).contains(&update.step);
    pod.operator.is_some() && keeps_pod
}

/// Passes once the label of the pod is as far ahead as this update needs it.
pub(crate) fn until_ahead(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Check {
    match &pod.operator {
        Some(operator) if goes_ahead(pod, update) && label(pod, live) != update.to => refuse(
            Code::Relabelling,
            format!(
                "its label {REVISION_LABEL} is changed to {} first: {} deletes a pod that is not ready \
                 and has an older one",
                update.to,
                operator.name()
            ),
        ),
        _ => Ok(()),
    }
}

/// Time in which an operator may still act on what it has seen before a label went ahead, in milliseconds.
const OPERATOR_ACTS: u64 = 3_000;

/// Passes unless labels of an OpenSearch operator's pods have just gone ahead. A pod that the operator deletes by the
/// old label, beside a node that we stop, would be two that are not ready: it takes these for a failure of the cluster.
pub(crate) fn until_operator_has_seen(context: &Context<'_>) -> Check {
    let makes = |operator: &Operator| operator.kind != OperatorKind::Eck;
    let is_new = |ahead: &LabelAhead| context.snapshot.now.since(ahead.since) < OPERATOR_ACTS;
    let has_just_moved = |pod: &Pod| {
        pod.operator.as_ref().is_some_and(makes) && pod.ahead.as_deref().is_some_and(is_new)
    };
    if context.index.pods().any(has_just_moved) {
        let message = "labels of its pods have just changed: waits a moment, in which the OpenSearch operator \
                       may still act on the old ones";
        return refuse(Code::Relabelling, message);
    }
    Ok(())
}

/// The revision in the label of the pod.
fn label<'p>(pod: &'p Pod, live: &'p LivePod) -> &'p str {
    pod.ahead.as_ref().map_or(&live.revision, |ahead| &ahead.revision)
}

fn go_ahead(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Action {
    let actual = (live.revision != update.to).then(|| live.revision.clone());
    let mut annotations = metadata(&update.patch.annotations);
    annotations.extend(actual_revision(pod, actual));
    let mut labels = differing(&update.patch.labels);
    labels.extend(revision(label(pod, live), &update.to));
    Action::PatchMetadata { uid: pod.uid.clone(), labels, annotations }
}

/// The patch back, once it is known what the labels and annotations were.
fn go_back(pod: &Pod, live: &LivePod, ahead: &LabelAhead) -> Option<Action> {
    let back = ahead.back.as_ref().ok()?;
    let mut annotations = metadata(&back.annotations);
    annotations.extend(actual_revision(pod, None));
    let mut labels = differing(&back.labels);
    labels.extend(revision(&ahead.revision, &live.revision));
    Some(Action::PatchMetadata { uid: pod.uid.clone(), labels, annotations })
}

/// The patch that says that a pod is as its update wants it, and notes what its container was started with,
/// unless the pod says both. A label that is ahead of this update, at what the owner wants by now, stays there.
pub(crate) fn relabel(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Option<Action> {
    let now = label(pod, live);
    let wanted = match &pod.update {
        Ok(Some(wanted)) => Some(&wanted.to),
        Ok(None) => Some(&live.revision),
        Err(_) => None,
    };
    let is_ahead = pod.operator.is_some() && wanted.is_some_and(|wanted| wanted == now);
    let stays = now == update.to || is_ahead;
    let mut labels = BTreeMap::new();
    let mut annotations = BTreeMap::new();
    if !stays {
        labels = differing(&update.patch.labels);
        labels.extend(revision(now, &update.to));
        annotations = metadata(&update.patch.annotations);
    }
    let actual = (stays && now != update.to).then(|| update.to.clone());
    annotations.extend(actual_revision(pod, actual));
    annotations.extend(note(pod, update).map(|note| (CONTENT.to_owned(), note)));
    let is_empty = labels.is_empty() && annotations.is_empty();
    let action = Action::PatchMetadata { uid: pod.uid.clone(), labels, annotations };
    (!is_empty).then_some(action)
}

fn differing(changes: &BTreeMap<String, Change>) -> BTreeMap<String, Change> {
    let differing = changes.iter().filter(|(_, change)| change.seen != change.wanted);
    differing.map(|(key, change)| (key.clone(), change.clone())).collect()
}

/// The annotations that come with a label: the note of the content is written when the container has read it.
fn metadata(annotations: &BTreeMap<String, Change>) -> BTreeMap<String, Change> {
    let mut annotations = differing(annotations);
    annotations.remove(CONTENT);
    annotations
}

fn revision(now: &str, wanted: &str) -> Option<(String, Change)> {
    let seen = Some(now.to_owned()).filter(|revision| !revision.is_empty());
    (now != wanted)
        .then(|| (REVISION_LABEL.to_owned(), Change { seen, wanted: Some(wanted.to_owned()) }))
}

/// The change of the annotation with the revision that the pod was made from, unless the pod has the wanted value.
fn actual_revision(pod: &Pod, wanted: Option<String>) -> Option<(String, Change)> {
    let seen = pod.annotations.get(ACTUAL_REVISION).cloned();
    (seen != wanted).then(|| (ACTUAL_REVISION.to_owned(), Change { seen, wanted }))
}

/// The note that is still to be written, over the one that the pod has now.
fn note(pod: &Pod, update: &PodUpdate) -> Option<Change> {
    let wanted = update.patch.annotations.get(CONTENT)?.wanted.clone();
    let seen = pod.annotations.get(CONTENT).cloned();
    (seen != wanted).then_some(Change { seen, wanted })
}
