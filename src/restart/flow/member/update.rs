//! Changes a member's pod between its stop and its start, so that it is as its owner wants it: images,
//! sizes, the whole pod, and last the labels, by which the owner counts the pod as updated.
//!
//! [`frozen_update`]: the update that is frozen into the ledger when the member takes its slot.
//! [`container`]: the kubelet recreates containers. [`environment`]: variables of the engine. [`rollback`]: the
//! pod as it was before.

pub(crate) mod container;
pub(crate) mod environment;
pub(crate) mod frozen_update;
pub(crate) mod rollback;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::flow::member::update::container::{is_made_anew, last_ids, until_made_anew};
use crate::flow::member::update::environment::{is_started_with, until_annotated};
use crate::flow::member::update::frozen_update::{is_image_of_manager_due, is_managers};
use crate::flow::turn::{Turn, TurnView, wait};
use crate::{
    Action, Change, Code, Context, LivePod, Member, MemberUpdate, Pod, PodUpdate, ResizeState,
    UpdateStep,
};

pub(crate) use container::without_manager;
pub(crate) use frozen_update::{
    due_images, due_resources, exits, is_for_updates, refresh, why_left_out,
};

/// The step by which a member is restarted.
pub(crate) fn step_of(member: &Member) -> UpdateStep {
    member.update.as_ref().map_or(UpdateStep::Restart, |fixed| fixed.update.step)
}

/// True if the pod of the member changes before the engine is started again: that needs the apiserver.
pub(crate) fn changes_before_start(member: &Member) -> bool {
    let update = member.update.as_ref().map(|fixed| &fixed.update);
    let has_variables = update.is_some_and(|update| update.patch.variables.is_some());
    step_of(member) > UpdateStep::Restart || has_variables
}

/// Number of phases in which a member must be back: one more if its pod changes between stop and start.
pub(crate) fn phases(member: &Member) -> u64 {
    let waits_for_others = member.update.as_ref().is_some_and(|fixed| !fixed.others.is_empty());
    2 + u64::from(changes_before_start(member) || waits_for_others)
}

/// Longest wait for room on the Kubernetes node for a new size, in milliseconds: meanwhile the engine is
/// down.
const ROOM_WITHIN: u64 = 30_000;

/// Passes once the pod has all that the member's engine is to be started with. The engine is stopped.
pub(crate) fn until_carried_out(view: &TurnView<'_, '_>, pod: &Pod) -> Result<(), Turn> {
    let TurnView { member, .. } = *view;
    let Some(fixed) = &member.update else { return Ok(()) };
    let Some(live) = &pod.live else {
        return Err(wait(Code::UpdateUnknown, "the state of its pod was not read"));
    };
    match fixed.update.step {
        UpdateStep::None | UpdateStep::Relabel | UpdateStep::Move => Ok(()),
        UpdateStep::Restart | UpdateStep::Container => {
            until_annotated(fixed, pod)?;
            change_images(member, fixed, pod, live)?;
            until_made_anew(view, fixed, pod, live)
        }
        UpdateStep::Resize => {
            until_annotated(fixed, pod)?;
            // A container of a new image starts with the new size.
            resize(view, fixed, pod, live)?;
            change_images(member, fixed, pod, live)?;
            until_made_anew(view, fixed, pod, live)?;
            until_in_effect(fixed, live)
        }
        UpdateStep::Replace => Err(replace(pod)),
    }
}

/// True if the pod has everything that a new process can be started with, and the process has its variables; the labels
/// follow after the proof.
pub(crate) fn is_carried_out(member: &Member, pod: &Pod) -> bool {
    let Some(fixed) = &member.update else { return true };
    let Some(live) = &pod.live else { return false };
    match fixed.update.step {
        UpdateStep::None | UpdateStep::Relabel | UpdateStep::Move => true,
        UpdateStep::Restart => {
            due_images(&fixed.update, live).is_empty()
                && is_made_anew(fixed, live)
                && is_started_with(fixed, pod)
        }
        UpdateStep::Container | UpdateStep::Resize => {
            due_images(&fixed.update, live).is_empty()
                && due_resources(&fixed.update, live).is_empty()
                && is_in_effect(fixed, live)
                && is_made_anew(fixed, live)
                && is_started_with(fixed, pod)
        }
        // The new pod is another one than this.
        UpdateStep::Replace => false,
    }
}

/// Changes the images. The ids of the current containers are recorded before: one that was made in the
/// meantime is not the one with the new image.
fn change_images(
    member: &Member,
    fixed: &MemberUpdate,
    pod: &Pod,
    live: &LivePod,
) -> Result<(), Turn> {
    let images = due_images(&fixed.update, live);
    if images.is_empty() {
        return Ok(());
    }
    if let Some(why) = why_other_image(fixed, &images) {
        return Err(Turn::Abort(why));
    }
    let is_the_managers = images.keys().any(|container| is_managers(pod, container));
    let mut seen = fixed.clone();
    if is_the_managers && live.container_id.is_some() {
        seen.container_id.clone_from(&live.container_id);
    }
    seen.others.extend(last_ids(&images, live));
    if seen != *fixed {
        return Err(Turn::change(Member { update: Some(Box::new(seen)), ..member.clone() }));
    }
    not_refused(pod)?;
    let action = Action::PatchImages { uid: pod.uid.clone(), images };
    Err(Turn::act_and_wait(action, Code::NewContainer, "its images are being changed"))
}

/// Message about an image that is neither the old one nor the new one: admission has made it of the new one,
/// and another request would bring the same.
fn why_other_image(fixed: &MemberUpdate, due: &BTreeMap<String, Change>) -> Option<String> {
    due.iter().find_map(|(container, change)| {
        let before = &fixed.update.patch.images.get(container)?.seen;
        let (now, wanted) = (change.seen.as_ref()?, change.wanted.as_ref()?);
        (Some(now) != before.as_ref())
            .then(|| format!("its container {container} has the image {now} instead of {wanted}"))
    })
}

/// Passes unless the apiserver refuses to change the pod: then its engine is started again in it as it is.
fn not_refused(pod: &Pod) -> Result<(), Turn> {
    match &pod.unchangeable {
        Some(why) => Err(Turn::Abort(format!("the apiserver refuses to change its pod: {why}"))),
        None => Ok(()),
    }
}

/// Changes the size, and waits until the kubelet has put it into effect; or has accepted it, if a new image
/// makes another container anyway. A lower limit of memory may never come into effect in the container that
/// runs: the kubelet leaves the limit as it is while the container uses more.
fn resize(
    view: &TurnView<'_, '_>,
    fixed: &MemberUpdate,
    pod: &Pod,
    live: &LivePod,
) -> Result<(), Turn> {
    let resources = due_resources(&fixed.update, live);
    if !resources.is_empty() {
        not_refused(pod)?;
        let action = Action::Resize { uid: pod.uid.clone(), resources };
        return Err(Turn::act_and_wait(action, Code::Resizing, "its size is being changed"));
    }
    if let Some(ResizeState::Pending(why)) = &live.resize {
        let why = format!("its Kubernetes node has no room for the new size: {why}");
        while_it_may_pass(view, Some((why.as_str(), ROOM_WITHIN)))?;
    }
    match &live.resize {
        Some(ResizeState::Infeasible(why)) => {
            Err(Turn::Abort(format!("its Kubernetes node cannot give it the new size: {why}")))
        }
        Some(ResizeState::InProgress(_)) if is_image_of_manager_due(fixed, pod, live) => Ok(()),
        Some(ResizeState::Pending(_) | ResizeState::InProgress(_)) | None => {
            until_in_effect(fixed, live)
        }
    }
}

/// Passes once the kubelet has put the sizes in the spec into effect.
fn until_in_effect(fixed: &MemberUpdate, live: &LivePod) -> Result<(), Turn> {
    let message = "the kubelet has not applied its new size";
    match &live.resize {
        Some(
            ResizeState::Pending(why) | ResizeState::InProgress(why) | ResizeState::Infeasible(why),
        ) => Err(wait(Code::Resizing, format!("{message}: {why}"))),
        None if !is_in_effect(fixed, live) => Err(wait(Code::Resizing, format!("{message} yet"))),
        None => Ok(()),
    }
}

/// True if the kubelet has put the sizes in the spec into effect.
fn is_in_effect(fixed: &MemberUpdate, live: &LivePod) -> bool {
    let resources = &fixed.update.patch.resources;
    resources.keys().all(|container| live.resized.contains(container))
}

/// Deletes the pod: its owner recreates it, on the same volume claims. If it may not
/// be deleted any more, or the other one would fit nowhere, the engine is started again instead.
fn replace(pod: &Pod) -> Turn {
    let message = "its pod is being deleted; its owner recreates it";
    if pod.terminating {
        return wait(Code::PodGone, message);
    }
    if let Some(why) = &pod.undeletable {
        return Turn::Abort(why.clone());
    }
    match &pod.room {
        Ok(None) => {
            Turn::act_and_wait(Action::DeletePod { uid: pod.uid.clone() }, Code::PodGone, message)
        }
        Ok(Some(why)) => Turn::Abort(why.clone()),
        Err(unknown) => wait(Code::WouldNotFit, unknown.message.clone()),
    }
}

/// Maximum heap of the engine, in bytes, before its container gets another amount of memory, if it gets one
/// and the heap is known.
pub(crate) fn heap_before(context: &Context<'_>, pod: &Pod, update: &PodUpdate) -> Option<u64> {
    let changes = &update.patch.resources;
    let is_changed = changes
        .iter()
        .any(|(container, change)| is_managers(pod, container) && changes_memory(change));
    let is_resized = update.step == UpdateStep::Resize && is_changed;
    is_resized.then(|| context.index.node(&pod.node)?.heap_max).flatten()
}

fn changes_memory(change: &Change) -> bool {
    let memory = |resources: &Option<String>| -> Option<Value> {
        let resources: Value = serde_json::from_str(resources.as_ref()?).ok()?;
        Some(resources["limits"]["memory"].clone())
    };
    memory(&change.seen) != memory(&change.wanted)
}

/// Message about a node that is back with another amount of memory and with the heap that it had.
pub(crate) fn kept_heap(context: &Context<'_>, member: &Member) -> Option<String> {
    let before = member.update.as_ref()?.heap?;
    let now = context.index.node(&member.node)?.heap_max?;
    (now == before).then(|| {
        format!(
            "The heap of {} stayed at {} MiB, although its container has another amount of memory: a fixed \
             -Xmx does not follow",
            member.node,
            now >> 20
        )
    })
}

/// Passes while a hindrance of the member (its reason, and a number of milliseconds) may still pass: for that
/// time, from when it was first seen. The ledger has the time when it was seen until it has passed.
pub(crate) fn while_it_may_pass(
    view: &TurnView<'_, '_>,
    hindrance: Option<(&str, u64)>,
) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    let Some(fixed) = &member.update else { return Ok(()) };
    let now = context.snapshot.now;
    let hindered_since = match (hindrance, fixed.hindered_since) {
        (None, None) => return Ok(()),
        (None, Some(_)) => None,
        (Some(_), None) => Some(now),
        (Some((why, within)), Some(since)) => {
            let is_over = now.since(since) >= within;
            return if is_over { Err(Turn::Abort(why.to_owned())) } else { Ok(()) };
        }
    };
    let update = MemberUpdate { hindered_since, ..(**fixed).clone() };
    Err(Turn::change(Member { update: Some(Box::new(update)), ..member.clone() }))
}
