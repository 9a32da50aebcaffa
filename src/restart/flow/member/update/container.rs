//! The kubelet recreates the manager's container, and sidecars. Meanwhile the manager may be unreachable, and
//! only the pod shows the progress.

use super::frozen_update::due_images;
use super::wait_limit::while_it_may_pass;
use super::{phases, sidecar_images, step_of};
use crate::context::Context;
use crate::flow::observed::is_over_time;
use crate::flow::turn::{Turn, wait};
use crate::{Blocker, Code, ContainerWaiting, LivePod, Member, MemberUpdate, Pod, UpdateStep};

/// Reasons of the kubelet for a container that will never run.
const NEVER_RUNS: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];
/// Reasons of the kubelet for a container that does not run now. The kubelet retries: a registry does not
/// answer, or a Secret comes later.
const MAY_PASS: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
    "CreateContainerConfigError",
    "CreateContainerError",
];
/// Longest wait for one of [`MAY_PASS`] to pass, in milliseconds.
const PASSES_WITHIN: u64 = 120_000;
/// Reason of the kubelet for a container that ended again and again. The kubelet also gives this reason
/// before the first container of an image is made, if earlier ones of that image have ended, and for one that
/// was told to end.
const ENDS_AGAIN: &str = "CrashLoopBackOff";

/// Reason why a container with a new image does not run.
enum Hindrance {
    Never(String),
    MayPass(String),
}

/// Passes once each container that the update recreates is another one than before.
pub(super) fn until_made_anew(
    context: &Context<'_>,
    member: &Member,
    fixed: &MemberUpdate,
    pod: &Pod,
    live: &LivePod,
) -> Result<(), Turn> {
    if is_made_anew(fixed, live) {
        return Ok(());
    }
    until_hopeless(context, member, fixed, live)?;
    let message = if is_managers_anew(fixed, live) {
        sidecar_images::describe(fixed, pod, live)
    } else {
        describe(pod, live)
    };
    Err(wait(Code::NewContainer, message))
}

/// True if each container that the update recreates is another one than before.
pub(super) fn is_made_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    is_managers_anew(fixed, live) && sidecar_images::awaited(fixed, live).next().is_none()
}

fn is_managers_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    !fixed.update.makes_a_container()
        || live.container_id.is_some() && live.container_id != fixed.container_id
}

/// The turn of a member whose manager is unreachable, perhaps because its container is being recreated.
pub(crate) fn without_manager(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
    unknown: Blocker,
) -> Turn {
    let message = match waits_for_container(context, member, pod) {
        Ok(None) => unknown.message.clone(),
        Ok(Some(message)) => message,
        Err(turn) => return turn,
    };
    if is_over_time(context, member, phases(member)) {
        return Turn::Abort(format!("no answer in time: {message}"));
    }
    if step_of(member) == UpdateStep::Replace && pod.terminating {
        let message = "its pod is being deleted; its owner recreates it";
        return wait(Code::PodGone, message);
    }
    if message == unknown.message { Turn::Wait(unknown) } else { wait(Code::NewContainer, message) }
}

/// Progress of the new container, if one is being made.
fn waits_for_container(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
) -> Result<Option<String>, Turn> {
    let (Some(fixed), Some(live)) = (&member.update, &pod.live) else { return Ok(None) };
    if !fixed.update.makes_a_container() {
        return Ok(None);
    }
    until_hopeless(context, member, fixed, live)?;
    let is_old = live.container_id.is_some() && live.container_id == fixed.container_id;
    Ok((!is_old || is_managers_image_new(fixed, live)).then(|| describe(pod, live)))
}

/// Passes as long as the new containers may still run.
fn until_hopeless(
    context: &Context<'_>,
    member: &Member,
    fixed: &MemberUpdate,
    live: &LivePod,
) -> Result<(), Turn> {
    match hindrance(fixed, live) {
        Some(Hindrance::Never(why)) => Err(Turn::Abort(why)),
        Some(Hindrance::MayPass(why)) => {
            while_it_may_pass(context, member, Some((why.as_str(), PASSES_WITHIN)))
        }
        None => while_it_may_pass(context, member, None),
    }
}

/// Reason why a new container does not run, if the kubelet gives one. Without a new image there is nothing to
/// roll back to: then the container is waited for as long as the member has time.
fn hindrance(fixed: &MemberUpdate, live: &LivePod) -> Option<Hindrance> {
    let is_new = !is_managers_anew(fixed, live) && is_managers_image_new(fixed, live);
    let managers = live.waiting.as_ref().filter(|_| is_new).and_then(|waiting| {
        let has_ended = live.ended_id.is_some() && live.ended_id != fixed.container_id;
        let ends_again = has_ended && waiting.reason == ENDS_AGAIN;
        hindered("its new container", waiting, ends_again)
    });
    managers.or_else(|| {
        sidecar_images::awaited(fixed, live).find_map(|(name, other)| {
            let waiting = other?.waiting.as_ref()?;
            hindered(&format!("its new container {name}"), waiting, false)
        })
    })
}

fn hindered(what: &str, waiting: &ContainerWaiting, ends_again: bool) -> Option<Hindrance> {
    let ContainerWaiting { reason, message } = waiting;
    let is_among = |reasons: &[&str]| reasons.contains(&reason.as_str());
    let why = format!("{what} does not run: {reason}: {message}");
    if ends_again || is_among(&NEVER_RUNS) {
        return Some(Hindrance::Never(why));
    }
    is_among(&MAY_PASS).then_some(Hindrance::MayPass(why))
}

/// True if the manager's container gets another image, and the pod has it.
fn is_managers_image_new(fixed: &MemberUpdate, live: &LivePod) -> bool {
    let due = due_images(&fixed.update, live);
    let images = &fixed.update.patch.images;
    let mut managers = images.iter().filter(|(name, _)| !fixed.others.contains_key(*name));
    managers.any(|(name, change)| change.seen != change.wanted && !due.contains_key(name))
}

/// Message that the manager's container is being recreated, with the reason why it waits.
pub(super) fn describe(pod: &Pod, live: &LivePod) -> String {
    let why = why_it_waits(live.waiting.as_ref());
    format!("the kubelet recreates the container of {}{why}", pod.name)
}

/// End of a sentence: the kubelet's reason why a container waits; empty if it gives none.
pub(super) fn why_it_waits(waiting: Option<&ContainerWaiting>) -> String {
    match waiting {
        Some(ContainerWaiting { reason, message }) if message.is_empty() => format!(": {reason}"),
        Some(ContainerWaiting { reason, message }) => format!(": {reason}: {message}"),
        None => String::new(),
    }
}
