//! The kubelet recreates the manager's container, and sidecars. Meanwhile the manager may be unreachable,
//! and only the pod shows the progress. Each sidecar must be ready before the node is done.

use std::collections::BTreeMap;

use crate::flow::member::update::frozen_update::due_images;
use crate::flow::member::update::{phases, step_of, while_it_may_pass};
use crate::flow::observed::is_over_time;
use crate::flow::turn::{Turn, TurnView, wait};
use crate::{
    Blocker, Change, Code, ContainerWaiting, LivePod, Member, MemberUpdate, OtherContainer, Pod,
    UpdateStep,
};

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
pub(crate) fn until_made_anew(
    view: &TurnView<'_, '_>,
    fixed: &MemberUpdate,
    pod: &Pod,
    live: &LivePod,
) -> Result<(), Turn> {
    if is_made_anew(fixed, live) {
        return Ok(());
    }
    until_hopeless(view, fixed, live)?;
    let message = if is_managers_anew(fixed, live) {
        describe_sidecar(fixed, pod, live)
    } else {
        describe(pod, live)
    };
    Err(wait(Code::NewContainer, message))
}

/// True if each container that the update recreates is another one than before.
pub(crate) fn is_made_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    is_managers_anew(fixed, live) && awaited_sidecars(fixed, live).next().is_none()
}

fn is_managers_anew(fixed: &MemberUpdate, live: &LivePod) -> bool {
    !fixed.update.makes_a_container()
        || live.container_id.is_some() && live.container_id != fixed.container_id
}

/// The turn of a member whose manager is unreachable, perhaps because its container is being recreated.
pub(crate) fn without_manager(view: &TurnView<'_, '_>, pod: &Pod, unknown: Blocker) -> Turn {
    let TurnView { context, member, .. } = *view;
    let message = match waits_for_container(view, pod) {
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
fn waits_for_container(view: &TurnView<'_, '_>, pod: &Pod) -> Result<Option<String>, Turn> {
    let TurnView { member, .. } = *view;
    let (Some(fixed), Some(live)) = (&member.update, &pod.live) else { return Ok(None) };
    if !fixed.update.makes_a_container() {
        return Ok(None);
    }
    until_hopeless(view, fixed, live)?;
    let is_old = live.container_id.is_some() && live.container_id == fixed.container_id;
    Ok((!is_old || is_managers_image_new(fixed, live)).then(|| describe(pod, live)))
}

/// Passes as long as the new containers may still run.
fn until_hopeless(
    view: &TurnView<'_, '_>,
    fixed: &MemberUpdate,
    live: &LivePod,
) -> Result<(), Turn> {
    match hindrance(fixed, live) {
        Some(Hindrance::Never(why)) => Err(Turn::Abort(why)),
        Some(Hindrance::MayPass(why)) => {
            while_it_may_pass(view, Some((why.as_str(), PASSES_WITHIN)))
        }
        None => while_it_may_pass(view, None),
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
        awaited_sidecars(fixed, live).find_map(|(name, other)| {
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
pub(crate) fn describe(pod: &Pod, live: &LivePod) -> String {
    let why = why_it_waits(live.waiting.as_ref());
    format!("the kubelet recreates the container of {}{why}", pod.name)
}

/// End of a sentence: the kubelet's reason why a container waits; empty if it gives none.
fn why_it_waits(waiting: Option<&ContainerWaiting>) -> String {
    match waiting {
        Some(ContainerWaiting { reason, message }) if message.is_empty() => format!(": {reason}"),
        Some(ContainerWaiting { reason, message }) => format!(": {reason}: {message}"),
        None => String::new(),
    }
}

/// Ids of the last containers whose images change, by name of the sidecar; empty for one that had none.
pub(crate) fn last_ids(
    images: &BTreeMap<String, Change>,
    live: &LivePod,
) -> BTreeMap<String, String> {
    let changed = images.iter().filter(|(_, change)| change.seen != change.wanted);
    let last = changed.filter_map(|(name, _)| {
        let other = live.others.get(name)?;
        Some((name.clone(), other.last_id().unwrap_or_default().to_owned()))
    });
    last.collect()
}

/// Sidecars that have the new image and are not recreated yet; also those of an image that the pod had before
/// this update, as one that ended in the middle has left it, if the container does not run.
fn awaited_sidecars<'a>(
    fixed: &'a MemberUpdate,
    live: &'a LivePod,
) -> impl Iterator<Item = (&'a str, Option<&'a OtherContainer>)> {
    let due = due_images(&fixed.update, live);
    let changed = fixed.others.iter().filter_map(move |(name, before)| {
        let other = live.others.get(name);
        let last = other.and_then(OtherContainer::last_id);
        let is_anew = last.is_some_and(|last| last != before);
        (!is_anew && !due.contains_key(name)).then_some((name.as_str(), other))
    });
    let found = had_before(fixed, live).filter(|(_, other)| other.waiting.is_some());
    changed.chain(found.map(|(name, other)| (name, Some(other))))
}

/// Sidecars whose image in the update is the one that the pod had before.
fn had_before<'a>(
    fixed: &'a MemberUpdate,
    live: &'a LivePod,
) -> impl Iterator<Item = (&'a str, &'a OtherContainer)> {
    fixed.update.patch.images.iter().filter_map(|(name, change)| {
        let other = live.others.get(name)?;
        let had = change.seen == change.wanted && !fixed.others.contains_key(name);
        had.then_some((name.as_str(), other))
    })
}

/// Message about the first sidecar that is not recreated yet, with the reason why it waits.
fn describe_sidecar(fixed: &MemberUpdate, pod: &Pod, live: &LivePod) -> String {
    let Some((name, other)) = awaited_sidecars(fixed, live).next() else { return String::new() };
    let why = why_it_waits(other.and_then(|other| other.waiting.as_ref()));
    format!("the kubelet recreates the container {name} of {}{why}", pod.name)
}

/// Reason why a sidecar whose image was changed is not ready, if one is not. An update that ended in the
/// middle may have changed the image before this one.
pub(crate) fn why_others_are_not_ready(member: &Member, pod: &Pod) -> Option<String> {
    let (fixed, live) = member.update.as_ref().zip(pod.live.as_ref())?;
    let had_before = had_before(fixed, live).map(|(name, _)| name);
    fixed.others.keys().map(String::as_str).chain(had_before).find_map(|name| {
        let other = live.others.get(name);
        let why = why_it_waits(other.and_then(|other| other.waiting.as_ref()));
        let is_ready = other.is_some_and(|other| other.ready);
        (!is_ready).then(|| format!("its container {name} has another image and is not ready{why}"))
    })
}
