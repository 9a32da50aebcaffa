//! The config that a node is to be started with: the checksum of its sources, and whether it is
//! mounted.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::answers::SEQUENCE_GAP;
use crate::flow::observed::expected_now;
use crate::flow::turn::Turn;
use crate::{Blocker, Code, Manager, Member, Pod, Time, annotation};
use stayput_api::checksum::short;

/// Minimum time between two nudges of the kubelet, in milliseconds: at the first nudge it may have read an
/// old version of the Secret.
const NUDGE_AGAIN: u64 = 10_000;

/// Reason why a node could not be stopped, if the config of its sources was not mounted in it.
pub(crate) fn why_not_mounted(pod: &Pod, manager: &Manager) -> Option<String> {
    match expected_now(pod, manager) {
        Err(blocker) => Some(blocker.message),
        Ok(expected) => (expected != manager.mounted).then(|| not_mounted(pod)),
    }
}

/// The one message of [`Code::ConfigNotMounted`].
pub(crate) fn not_mounted(pod: &Pod) -> String {
    format!("the new config is not mounted in {} yet", pod.name)
}

/// Passes once the sources' config is the member's expected one and is mounted. `start`: a start
/// request with the old checksum may have been sent already; then its sequence is replaced as well.
pub(crate) fn until_mounted(
    context: &Context<'_>,
    member: &Member,
    pod: &Pod,
    manager: &Manager,
    start: bool,
) -> Result<(), Turn> {
    let expected = expected_now(pod, manager)?;
    if expected != member.expected {
        let mut moved = member.clone();
        moved.expected = expected;
        if start {
            moved.start_sequence += SEQUENCE_GAP;
        }
        return Err(Turn::change(moved));
    }
    if manager.mounted == expected {
        return Ok(());
    }
    let file = manager.lagging.as_ref().map_or(String::new(), |file| format!(" ({file})"));
    Err(nudge_and_wait(context, pod, expected.as_deref(), not_mounted(pod) + &file))
}

/// Makes the kubelet check the pod's volumes, by a change of an annotation: it checks them at every change of
/// the pod.
pub(crate) fn nudge_and_wait(
    context: &Context<'_>,
    pod: &Pod,
    expected: Option<&str>,
    message: String,
) -> Turn {
    let short = short(expected.unwrap_or_default());
    let nudged = pod.annotations.get(annotation::NUDGE).and_then(|value| {
        let (checksum, at) = value.split_once(' ')?;
        (checksum == short).then(|| Time::parse(at).ok())?
    });
    let now = context.snapshot.now;
    let mut changes = Changes::default();
    if nudged.is_none_or(|at| now.since(at) >= NUDGE_AGAIN) {
        changes.annotate(pod, [(annotation::NUDGE, Some(format!("{short} {now}")))]);
    }
    Turn::Act(Box::new(changes), Some(Blocker { code: Code::ConfigNotMounted, message }))
}
