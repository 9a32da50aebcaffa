//! What the snapshot says about a pod or a member.

use crate::blocker::{Check, refuse};
use crate::context::Context;
use crate::{Blocker, Code, Manager, Member, Pod, Restart, Sources, annotation};

/// Whether so many phases' time has passed since the member took its slot. A phase that ends early
/// leaves its time to the next, so that only the slot's moment must be remembered.
pub(super) fn is_over_time(context: &Context<'_>, member: &Member, phases: u64) -> bool {
    context.snapshot.now.since(member.since) >= phases.saturating_mul(context.policy.phase_timeout)
}

/// Whether the cluster lists a new process of this member's node.
pub(super) fn has_joined(context: &Context<'_>, member: &Member) -> Result<bool, Blocker> {
    context.index.engine()?;
    Ok(lists_new_process(context, member))
}

/// The same, where an engine that cannot be asked lists nobody.
pub(super) fn lists_new_process(context: &Context<'_>, member: &Member) -> bool {
    let node = context.index.node(&member.node);
    node.is_some_and(|node| member.ephemeral_id.as_ref() != Some(&node.ephemeral_id))
}

/// Whether the cluster lists the process that the member had before its turn. An engine that cannot
/// be asked (it may have been this one) says nothing against the manager's report.
pub(super) fn lists_old_process(context: &Context<'_>, member: &Member) -> bool {
    let node = context.index.node(&member.node);
    node.is_some_and(|node| member.ephemeral_id.as_ref() == Some(&node.ephemeral_id))
}

/// The checksum the sources have now. Without declared sources it is what is mounted.
pub(super) fn expected_now(pod: &Pod, manager: &Manager) -> Result<Option<String>, Blocker> {
    match &pod.sources {
        Sources::Checksum(checksum) => Ok(Some(checksum.clone())),
        Sources::Undeclared => Ok(manager.mounted.clone()),
        Sources::Absent(message) => {
            Err(Blocker { code: Code::SourceAbsent, message: message.clone() })
        }
    }
}

/// Whether somebody wants this node to stay stopped.
pub(super) fn is_to_be_stopped(context: &Context<'_>, pod: &Pod) -> bool {
    context.snapshot.cluster.stopped.contains(&pod.node)
        || pod.annotations.get(annotation::STOPPED).is_some_and(|value| value == "true")
}

/// Passes unless a person has paused the cluster.
pub(super) fn not_paused(context: &Context<'_>) -> Check {
    if context.snapshot.cluster.paused {
        return refuse(Code::Paused, "paused (spec.paused): nothing is stopped");
    }
    Ok(())
}

/// Whether the SearchCluster is deleted together with its pods: then nothing is owed to anybody.
pub(super) fn is_deleted_with_its_pods(context: &Context<'_>) -> bool {
    context.snapshot.cluster.deleting && context.snapshot.pods.is_empty()
}

/// The zone of a restart that stops it as a whole, in words.
pub(super) fn zone_in_words(restart: &Restart) -> String {
    format!("zone {}", restart.request.target.zone.as_deref().unwrap_or_default())
}
