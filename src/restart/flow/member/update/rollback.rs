//! The rollback of an update: a pod gets the images, sizes and variables again that it had. The image of the manager's
//! container and its size are changed only while its engine is stopped by us, or while that container does
//! not run. The images of sidecar containers need no stop: they are given up, so nothing is lost with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow::labels::relabel;
use crate::flow::member::update::container::{describe, is_made_anew};
use crate::flow::member::update::environment::{self, is_started_with};
use crate::flow::member::update::frozen_update::{covers, due_images, due_resources, is_managers};
use crate::flow::turn::{Turn, wait};
use crate::{
    Action, Change, Code, Ledger, LivePod, Manager, Member, MemberStep, MemberUpdate, Pod,
    PodPatch, Unreturnable,
};
use stayput_api::{Desired, State};

/// The next step of a pod's rollback, before its engine may be started.
pub(crate) enum SetBack {
    /// Record the image that is given up and the container that runs now, before the patch: a container with
    /// another id proves that the kubelet recreated it.
    Note(Box<MemberUpdate>),
    Act(Box<Action>),
    Wait(String),
}

/// The patch that undoes an update's images, sizes and variables, without those that the apiserver refuses to roll back.
fn undo_of(fixed: &MemberUpdate) -> PodPatch {
    let (patch, stays) = (&fixed.update.patch, &fixed.stays);
    PodPatch {
        images: reversed(&patch.images, &stays.images),
        resources: reversed(&patch.resources, &stays.resources),
        variables: patch.variables.as_ref().filter(is_change).map(back),
        ..PodPatch::default()
    }
}

fn reversed(
    changes: &BTreeMap<String, Change>,
    stays: &BTreeSet<String>,
) -> BTreeMap<String, Change> {
    let undone =
        |(container, change): &(&String, &Change)| is_change(change) && !stays.contains(*container);
    let undone = changes.iter().filter(undone);
    undone.map(|(container, change)| (container.clone(), back(change))).collect()
}

fn is_change(change: &&Change) -> bool {
    change.seen != change.wanted
}

fn back(change: &Change) -> Change {
    Change { seen: change.wanted.clone(), wanted: change.seen.clone() }
}

/// True if a member's update changes an image, a size or variables, which a rollback undoes.
pub(crate) fn has_undo(member: &Member) -> bool {
    member.update.as_ref().is_some_and(|fixed| !undo_of(fixed).is_empty())
}

/// True if the pod of a member has an image, a size or variables of its update that must be rolled back.
pub(crate) fn is_due_of(member: &Member, pod: Option<&Pod>) -> bool {
    left_of(member, pod).is_some_and(|left| left.beside.or(left.stopped).is_some())
}

/// True if the pod of a member has something to roll back, and all of it can be rolled back while the engine
/// runs.
pub(crate) fn is_due_beside_engine(member: &Member, pod: Option<&Pod>) -> bool {
    left_of(member, pod).is_some_and(|left| left.beside.is_some() && left.stopped.is_none())
}

/// True if the pod has a part of this update that is rolled back only while its engine is stopped.
pub(crate) fn needs_a_stop(fixed: &MemberUpdate, pod: &Pod) -> bool {
    left(fixed, pod).stopped.is_some()
}

/// True if the pod of a member has a part of its update that is rolled back only while its engine is stopped.
pub(crate) fn needs_a_stop_of(member: &Member, pod: Option<&Pod>) -> bool {
    left_of(member, pod).is_some_and(|left| left.stopped.is_some())
}

/// The next patch of a pod's rollback.
fn next_of(fixed: &MemberUpdate, pod: &Pod) -> Option<PodPatch> {
    let Left { beside, stopped } = left(fixed, pod);
    let mut next = PodPatch::default();
    let action = beside.or(stopped)?;
    if let Action::PatchImages { images, .. } = action {
        next.images = images;
    } else if let Action::Resize { resources, .. } = action {
        next.resources = resources;
    }
    // A patch of annotations is not asked for before.
    (!next.is_empty()).then_some(next)
}

/// The apiserver's refusal of the next patch of a pod's rollback. A refusal of an earlier patch does not
/// count.
fn refusal_of_next<'a>(fixed: &MemberUpdate, pod: &'a Pod) -> Option<&'a Unreturnable> {
    let refusal = pod.unreturnable.as_deref()?;
    (next_of(fixed, pod)? == refusal.patch).then_some(refusal)
}

/// True if the image of the manager's container and its size may be changed now.
fn may_change(live: &LivePod, manager: Option<&Manager>) -> bool {
    match manager {
        Some(manager) => manager.state == State::Stopped && manager.desired == Desired::Stopped,
        None => live.waiting.is_some(),
    }
}

/// The next patches of a pod's rollback.
#[derive(Default)]
struct Left {
    /// A patch that may be made while the engine runs.
    beside: Option<Action>,
    /// A patch for which the engine must be stopped.
    stopped: Option<Action>,
}

fn left_of(member: &Member, pod: Option<&Pod>) -> Option<Left> {
    member.update.as_ref().zip(pod).map(|(fixed, pod)| left(fixed, pod))
}

fn left(fixed: &MemberUpdate, pod: &Pod) -> Left {
    let Some(live) = &pod.live else { return Left::default() };
    let undo = undo_of(fixed);
    let uid = || pod.uid.clone();
    let images = given_up_images(fixed, &undo, live).into_iter();
    let (managers, others) =
        images.partition::<BTreeMap<_, _>, _>(|(container, _)| is_managers(pod, container));
    let patch = |images: BTreeMap<_, _>| {
        (!images.is_empty()).then(|| Action::PatchImages { uid: uid(), images })
    };
    let resize = || {
        let resources = given_up_sizes(&undo, live);
        (!resources.is_empty()).then(|| Action::Resize { uid: uid(), resources })
    };
    let variables = || environment::rollback(undo.variables.as_ref(), pod);
    let stopped = patch(managers).or_else(resize).or_else(variables);
    Left { beside: patch(others), stopped }
}

/// Images to roll back, which are not the old ones: admission may have replaced the new image by another one.
/// An image that admission has made of the old one, once that was put back, stays.
fn given_up_images(
    fixed: &MemberUpdate,
    undo: &PodPatch,
    live: &LivePod,
) -> BTreeMap<String, Change> {
    let there = undo.images.iter().filter_map(|(container, change)| {
        let now = live.images.get(container)?;
        let is_given_up = fixed.given_up.get(container).is_none_or(|given_up| given_up == now);
        let change = Change { seen: Some(now.clone()), wanted: change.wanted.clone() };
        (change.seen != change.wanted && is_given_up).then(|| (container.clone(), change))
    });
    there.collect()
}

/// Sizes to roll back that the living pod has.
fn given_up_sizes(undo: &PodPatch, live: &LivePod) -> BTreeMap<String, Change> {
    let has =
        |now: &str, value: &Option<String>| value.as_ref().is_some_and(|value| covers(now, value));
    let there = undo.resources.iter().filter_map(|(container, undone)| {
        let now = live.resources.get(container)?;
        let is_given_up = has(now, &undone.seen) && !has(now, &undone.wanted);
        let change = Change { seen: Some(now.clone()), wanted: undone.wanted.clone() };
        is_given_up.then(|| (container.clone(), change))
    });
    there.collect()
}

/// The update with the records that come before a patch of images: the images that are given up, and the
/// container that runs with them.
fn noted(fixed: &MemberUpdate, pod: &Pod, live: &LivePod, action: &Action) -> MemberUpdate {
    let mut noted = fixed.clone();
    let Action::PatchImages { images, .. } = action else { return noted };
    if live.container_id.is_some() && images.keys().any(|container| is_managers(pod, container)) {
        noted.given_up_id.clone_from(&live.container_id);
    }
    let seen = images.iter().filter_map(|(name, to)| Some((name.clone(), to.seen.clone()?)));
    noted.given_up.extend(seen);
    noted
}

/// Passes once the pod is as it was before an update, and the kubelet has recreated its container; or if the
/// pod must not be changed now.
pub(crate) fn until_set_back(
    fixed: &MemberUpdate,
    pod: &Pod,
    manager: Option<&Manager>,
) -> Result<(), SetBack> {
    let Some(live) = &pod.live else { return Ok(()) };
    let undo = undo_of(fixed);
    if undo.is_empty() {
        return Ok(());
    }
    let Left { beside, stopped } = left(fixed, pod);
    if let Some(action) = beside.or(stopped.filter(|_| may_change(live, manager))) {
        let noted = noted(fixed, pod, live, &action);
        if noted != *fixed {
            return Err(SetBack::Note(Box::new(noted)));
        }
        if let Some(refusal) = refusal_of_next(fixed, pod) {
            // A dry run in each plan asks again.
            let message = format!("the apiserver refuses the rollback of its pod: {}", refusal.why);
            return Err(SetBack::Wait(message));
        }
        return Err(SetBack::Act(Box::new(action)));
    }
    if manager.is_none() && live.waiting.is_some() {
        return Err(SetBack::Wait(describe(pod, live)));
    }
    // If admission has made another image of the old one, the container is recreated in any case.
    let has_old_images =
        undo.images.iter().all(|(name, change)| live.images.get(name) == change.wanted.as_ref());
    let is_old = has_old_images && live.container_id == fixed.container_id
        || live.container_id != fixed.given_up_id;
    if manager.is_some() && live.container_id.is_some() && !is_old {
        return Err(SetBack::Wait(describe(pod, live)));
    }
    if undo.resources.keys().any(|container| !live.resized.contains(container)) {
        let message = "the kubelet has not applied its old size yet";
        return Err(SetBack::Wait(message.to_owned()));
    }
    let is_behind = manager.is_some_and(|manager| environment::is_behind(pod, manager));
    if undo.variables.is_some() && is_behind {
        return Err(SetBack::Wait(format!(
            "its old variables are not mounted in {} yet",
            pod.name
        )));
    }
    Ok(())
}

/// Like [`until_set_back`], for a member that is brought back; passes if its pod is not listed.
pub(crate) fn until_member_set_back(
    member: &Member,
    pod: Option<&Pod>,
    manager: Option<&Manager>,
) -> Result<(), Turn> {
    let Some((fixed, pod)) = member.update.as_ref().zip(pod) else { return Ok(()) };
    until_set_back(fixed, pod, manager).map_err(|left| match left {
        SetBack::Note(update) => Turn::change(Member { update: Some(update), ..member.clone() }),
        SetBack::Act(action) => {
            let has_variables = matches!(*action, Action::PatchMetadata { .. });
            let what = if has_variables { "variables" } else { "images and its size" };
            let message = format!("its {what} are being rolled back");
            Turn::act_and_wait(*action, Code::Aborting, message)
        }
        SetBack::Wait(message) => wait(Code::Aborting, message),
    })
}

/// The next patch of a pod's rollback, if its turn or a debt asks for one: the apiserver is asked by a dry
/// run before.
pub(crate) fn set_back_next(ledger: &Ledger, pod: &Pod) -> Option<PodPatch> {
    let is_brought_back = |member: &&Member| member.step == MemberStep::Aborting;
    let members = ledger.members().filter(is_brought_back);
    let members = members.map(|member| (&member.pod_uid, &member.update));
    let owed = ledger.debts.start.iter().map(|debt| (&debt.pod_uid, &debt.update));
    let (_, fixed) = members.chain(owed).find(|(uid, _)| **uid == pod.uid)?;
    next_of(fixed.as_ref()?, pod)
}

/// The update of a pod, with the changes that the apiserver refuses to roll back, and the end of a message
/// about that.
pub(crate) fn refused_part(fixed: &MemberUpdate, pod: &Pod) -> Option<(MemberUpdate, String)> {
    let refusal = refusal_of_next(fixed, pod)?;
    let PodPatch { images, resources, .. } = refusal.patch.clone();
    let is_the_managers = images.keys().any(|container| is_managers(pod, container));
    if is_the_managers && pod.live.as_ref()?.container_id.is_none() {
        // Nothing could be started in the pod as it is.
        return None;
    }
    let what = if images.is_empty() { "size" } else { "image" };
    let told = format!(
        "; its pod keeps the new {what}, since the apiserver refuses the rollback: {}",
        refusal.why
    );
    let mut update = fixed.clone();
    if is_the_managers {
        // No other container is made then.
        update.given_up_id = None;
    }
    update.stays.images.extend(images.into_keys());
    update.stays.resources.extend(resources.into_keys());
    Some((update, told))
}

/// The patch that labels a pod with the template that it was changed to, if it keeps all changes of that
/// template: what another container has read at its start is not undone. With the old label, a reverted template would
/// have no effect.
pub(crate) fn label_kept_template(fixed: &MemberUpdate, pod: &Pod) -> Option<Action> {
    let live = pod.live.as_ref()?;
    let keeps_container = || fixed.update.makes_a_container() && undo_of(fixed).is_empty();
    let is_whole = due_images(&fixed.update, live).is_empty()
        && due_resources(&fixed.update, live).is_empty()
        && is_made_anew(fixed, live)
        && is_started_with(fixed, pod);
    let keeps_all = is_whole && (!fixed.stays.is_empty() || keeps_container());
    keeps_all.then(|| relabel(pod, live, &fixed.update))?
}
