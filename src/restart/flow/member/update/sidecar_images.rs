//! Sidecar containers whose images change: the kubelet recreates them, and each must be ready before the node
//! is done and the next one has its turn.

use std::collections::BTreeMap;

use super::container::why_it_waits;
use super::frozen_update::due_images;
use crate::{Change, LivePod, Member, MemberUpdate, OtherContainer, Pod};

/// Ids of the last containers whose images change, by name of the sidecar; empty for one that had none.
pub(super) fn last_ids(
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
pub(super) fn awaited<'a>(
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
pub(super) fn describe(fixed: &MemberUpdate, pod: &Pod, live: &LivePod) -> String {
    let Some((name, other)) = awaited(fixed, live).next() else { return String::new() };
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
