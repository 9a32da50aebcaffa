//! The way back: a pod gets the images and sizes again that it had. It is changed only while its engine
//! is stopped by us, or while the manager's container does not run.

use std::collections::BTreeMap;

use super::container::describe;
use super::fixed::{covers, is_managers};
use crate::flow::turn::{Turn, wait};
use crate::{Action, Change, Code, LivePod, Manager, Member, MemberUpdate, Pod, PodPatch};
use stayput_api::{Desired, State};

/// The changes that undo those of a member; none if it changes neither images nor sizes.
pub(in crate::flow) fn undo_of(member: &Member) -> Option<PodPatch> {
    let patch = &member.update.as_ref()?.update.patch;
    let undo = PodPatch {
        images: reversed(&patch.images),
        resources: reversed(&patch.resources),
        ..PodPatch::default()
    };
    (!undo.is_empty()).then_some(undo)
}

fn reversed(changes: &BTreeMap<String, Change>) -> BTreeMap<String, Change> {
    let differing = changes.iter().filter(|(_, change)| change.seen != change.wanted);
    let back =
        |change: &Change| Change { seen: change.wanted.clone(), wanted: change.seen.clone() };
    differing.map(|(container, change)| (container.clone(), back(change))).collect()
}

/// Whether the pod has anything that must be undone.
pub(in crate::flow) fn is_due(undo: &PodPatch, pod: &Pod) -> bool {
    pod.live.as_ref().is_some_and(|live| next(undo, pod, live).is_some())
}

/// Whether the pod of a member has anything that must be undone.
pub(in crate::flow) fn is_due_of(member: &Member, pod: Option<&Pod>) -> bool {
    undo_of(member).zip(pod).is_some_and(|(undo, pod)| is_due(&undo, pod))
}

/// The next patch that undoes something; none if the pod is as it was, or if it must not be changed
/// now.
pub(in crate::flow) fn set_back(
    undo: &PodPatch,
    pod: &Pod,
    manager: Option<&Manager>,
) -> Option<Action> {
    let live = pod.live.as_ref()?;
    let may = match manager {
        Some(manager) => manager.state == State::Stopped && manager.desired == Desired::Stopped,
        None => live.waiting.is_some(),
    };
    next(undo, pod, live).filter(|_| may)
}

fn next(undo: &PodPatch, pod: &Pod, live: &LivePod) -> Option<Action> {
    let uid = pod.uid.clone();
    let images = still_there(&undo.images, &live.images, |one, other| one == other);
    if !images.is_empty() {
        return Some(Action::PatchImages { uid, images });
    }
    let resources = still_there(&undo.resources, &live.resources, covers);
    (!resources.is_empty()).then_some(Action::Resize { uid, resources })
}

/// The changes whose value to be given up the living pod has.
fn still_there(
    changes: &BTreeMap<String, Change>,
    live: &BTreeMap<String, String>,
    is_same: fn(&str, &str) -> bool,
) -> BTreeMap<String, Change> {
    let is =
        |now: &str, value: &Option<String>| value.as_ref().is_some_and(|value| is_same(now, value));
    let there = changes.iter().filter_map(|(container, change)| {
        let now = live.get(container)?;
        let change = Change { seen: Some(now.clone()), wanted: change.wanted.clone() };
        let is_given_up = is(now, &changes[container].seen) && !is(now, &change.wanted);
        is_given_up.then(|| (container.clone(), change))
    });
    there.collect()
}

/// Passes once the pod of a member that is brought back is as it was, in a container of its own.
pub(in crate::flow::member) fn until_set_back(
    member: &Member,
    pod: &Pod,
    manager: Option<&Manager>,
) -> Result<(), Turn> {
    let (Some(fixed), Some(live)) = (&member.update, &pod.live) else { return Ok(()) };
    let Some(undo) = undo_of(member) else { return Ok(()) };
    if let Some(action) = set_back(&undo, pod, manager) {
        let is_the_managers = undo.images.keys().any(|container| is_managers(pod, container));
        if is_the_managers && live.container_id.is_some() && live.container_id != fixed.given_up_id
        {
            let given_up_id = live.container_id.clone();
            let seen = MemberUpdate { given_up_id, ..(**fixed).clone() };
            return Err(Turn::change(Member { update: Some(Box::new(seen)), ..member.clone() }));
        }
        let message = "its images and its size are being set back";
        return Err(Turn::act_and_wait(action, Code::Aborting, message));
    }
    if manager.is_none() && live.waiting.is_some() {
        return Err(wait(Code::Aborting, describe(pod, live)));
    }
    let is_old = live.container_id == fixed.container_id || live.container_id != fixed.given_up_id;
    if manager.is_some() && live.container_id.is_some() && !is_old {
        return Err(wait(Code::Aborting, describe(pod, live)));
    }
    if undo.resources.keys().any(|container| !live.resized.contains(container)) {
        return Err(wait(Code::Aborting, "the kubelet has not put its old size into effect yet"));
    }
    Ok(())
}
