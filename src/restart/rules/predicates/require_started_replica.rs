//! The last started copy of a shard stays up.

use super::{Blocker, Check, Evaluation, Peer, Predicate, block};
use crate::rules::last_resort;

/// A node is stopped only if every shard of which it has a started copy has another started copy on a
/// node that stays. Without one the cluster would turn red.
///
/// Stricter than published: replicas count as primaries do, also in a green cluster, because only the
/// copies that would be left count. `unreplicated_index` checks indices without replicas.
pub(super) fn require_started_replica(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.allows_outage(candidate) {
        return Ok(());
    }
    let lost = evaluation.copies().lost(candidate.name()).map_err(|unknown| Blocker {
        message: format!(
            "{} is not stopped: the shards it holds are unknown: {}",
            candidate.name(),
            unknown.message
        ),
        ..Blocker::engine_unreachable(unknown)
    })?;
    let Some(shard) = lost.first else { return Ok(()) };
    let name = candidate.name();
    let last_resort = last_resort(evaluation.cluster);
    let more = super::more_shards(lost.number);
    block(
        Predicate::StartedReplica,
        if candidate.is_in_batch {
            format!(
                "{name} and the nodes stopped with it hold the last started copies of {shard}{more}: \
                 waits until another copy is started on a node that stays up; {WHY_NONE}; \
                 {last_resort}"
            )
        } else {
            format!(
                "{name} holds the last started copy of {shard}{more}: waits until another copy is \
                 started on a node that stays up; {WHY_NONE}; {last_resort}"
            )
        },
    )
}

const WHY_NONE: &str = "GET _cluster/allocation/explain says why there is none";
