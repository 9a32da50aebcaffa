//! The kubelet makes the manager's container anew. Meanwhile its manager does not answer, and only the
//! pod says how far that is.

use super::fixed::due_images;
use super::{others, phases, step_of};
use crate::context::Context;
use crate::flow::observed::is_over_time;
use crate::flow::turn::{Turn, wait};
use crate::{Blocker, Code, ContainerWaiting, LivePod, Member, MemberUpdate, Pod, UpdateStep};

/// Why a container never runs, whatever is waited for.
const NEVER_RUNS: [&str; 4] =
    ["ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"];
/// Why a container with a new image does not run: it ended again and again. The kubelet also gives this
/// reason before the first one is made, if earlier ones of that image have ended, and for one that was told
/// to end.
const ENDS_AGAIN: &str = "CrashLoopBackOff";

/// Passes once each container that the update makes anew is another one than before.
pub(super) fn until_made_anew(fixed: &MemberUpdate, pod: &Pod, live: &LivePod) -> Result<(), Turn> {
    if is_made_anew(fixed, live) {
        return Ok(());
    }
    match why_never(fixed, live) {
        Some(reason) => Err(Turn::Abort(reason)),
        None if !is_managers_anew(fixed, live) => {
            Err(wait(Code::NewContainer, describe(pod, live)))
        }
        None => Err(wait(Code::NewContainer, others::describe(fixed, pod, live))),
    }
}

/// Whether each container that the update makes anew is another one than before.
pub(super) fn is_made_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    is_managers_anew(fixed, live) && others::awaited(fixed, live).next().is_none()
}

fn is_managers_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    !fixed.update.makes_a_container()
        || live.container_id.is_some() && live.container_id != fixed.container_id
}

/// A member whose manager does not answer: its container may be made anew just now.
pub(in crate::flow::member) fn without_manager(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
    unknown: Blocker,
) -> Turn {
    let message = match waits_for_container(member, pod) {
        Ok(None) => unknown.message.clone(),
        Ok(Some(message)) => message,
        Err(never) => return Turn::Abort(never),
    };
    if is_over_time(context, member, phases(member)) {
        return Turn::Abort(format!("no answer in time: {message}"));
    }
    if step_of(member) == UpdateStep::Replace && pod.terminating {
        let message = "its pod is being deleted; its owner makes another one of its name";
        return wait(Code::PodGone, message);
    }
    match message == unknown.message {
        true => Turn::Wait(unknown),
        false => wait(Code::NewContainer, message),
    }
}

/// How far the new container is; none if none is being made. An error if it never runs.
fn waits_for_container(member: &Member, pod: &Pod) -> Result<Option<String>, String> {
    let (Some(fixed), Some(live)) = (&member.update, &pod.live) else { return Ok(None) };
    if !fixed.update.makes_a_container() {
        return Ok(None);
    }
    if let Some(never) = why_never(fixed, live) {
        return Err(never);
    }
    let is_old = live.container_id.is_some() && live.container_id == fixed.container_id;
    let has_new_image = has_changed_images(fixed) && due_images(fixed, live).is_empty();
    Ok((!is_old || has_new_image).then(|| describe(pod, live)))
}

/// Why a new container never runs, if the kubelet says so.
fn why_never(fixed: &MemberUpdate, live: &LivePod) -> Option<String> {
    let of_others = || {
        let mut waiting = others::awaited(fixed, live);
        waiting.find_map(|(name, other)| {
            let ContainerWaiting { reason, message } = other?.waiting.as_ref()?;
            let never = NEVER_RUNS.contains(&reason.as_str());
            never.then(|| format!("its new container {name} does not run: {reason}: {message}"))
        })
    };
    why_managers_never(fixed, live).or_else(of_others)
}

fn why_managers_never(fixed: &MemberUpdate, live: &LivePod) -> Option<String> {
    if !fixed.update.makes_a_container() {
        return None;
    }
    let ContainerWaiting { reason, message } = live.waiting.as_ref()?;
    let has_new_image = has_changed_images(fixed) && due_images(fixed, live).is_empty();
    let has_ended = live.ended_id.is_some() && live.ended_id != fixed.container_id;
    let ends_again = has_new_image && has_ended && reason == ENDS_AGAIN;
    let never = NEVER_RUNS.contains(&reason.as_str()) || ends_again;
    never.then(|| format!("its new container does not run: {reason}: {message}"))
}

/// Whether the member changes any image.
fn has_changed_images(fixed: &MemberUpdate) -> bool {
    fixed.update.patch.images.values().any(|change| change.seen != change.wanted)
}

/// What the new container waits for.
pub(super) fn describe(pod: &Pod, live: &LivePod) -> String {
    let name = &pod.name;
    match &live.waiting {
        Some(ContainerWaiting { reason, message }) if message.is_empty() => {
            format!("the kubelet makes the container of {name} anew: {reason}")
        }
        Some(ContainerWaiting { reason, message }) => {
            format!("the kubelet makes the container of {name} anew: {reason}: {message}")
        }
        None => format!("the kubelet makes the container of {name} anew"),
    }
}
