//! Nobody's last started copy.

use super::{Blocker, Check, Evaluation, Peer, Predicate, no};

/// A node is stopped only if every shard it has a started copy of has another started copy on a
/// node that stays: otherwise the cluster would turn red.
///
/// Stricter than published: replicas count as primaries do, and green is not trusted, because what
/// is asked is what would be left. A shard whose index has no replicas at all is the matter of
/// `unreplicated_index`.
pub(super) fn require_started_replica(pass: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if pass.policy.allow_outage {
        return Ok(());
    }
    let down = pass.others_down(candidate);
    let lost = pass.copies().lost(candidate.name(), &down).map_err(|unknown| Blocker {
        message: format!(
            "{} is not stopped while it is not known which shards it holds: {}",
            candidate.name(),
            unknown.message
        ),
        ..Blocker::engine_unreachable(unknown)
    })?;
    let Some(shard) = lost.replicated.first() else { return Ok(()) };
    let name = candidate.name();
    let more = super::others(lost.replicated.len());
    no(
        Predicate::StartedReplica,
        if candidate.together {
            format!(
                "{name} and the nodes that go with it hold the last started copies of \
                 {shard}{more}: waits until another is started on a node that stays up; \
                 {OR_ELSE}"
            )
        } else {
            format!(
                "{name} holds the last started copy of {shard}{more}: waits until another is \
                 started on a node that stays up; {OR_ELSE}"
            )
        },
    )
}

const OR_ELSE: &str = "spec.restart.allowOutage: true would do without it until the node is back";
