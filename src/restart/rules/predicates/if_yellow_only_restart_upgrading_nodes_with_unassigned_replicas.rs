//! In a yellow cluster a node is restarted only if waiting would not make the cluster green.

use super::{Blocker, Check, Evaluation, Peer, Predicate, disable_hint};
use crate::Color;

/// In a yellow cluster a node that serves is restarted only if waiting would not help. Either it runs
/// an older version than others, so that replicas cannot be allocated to it, and no shard is moving or
/// waits for its node.
/// Or the cluster is settled: nothing is moving, and no node is missing.
///
/// In place the versions of the running nodes are compared, and *settled* yellow passes, where the published
/// predicate would wait forever. A cluster of one node is never better than yellow.
pub(super) fn if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.is_healthy {
        return Ok(());
    }
    let health = evaluation.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    if health.color != Color::Yellow || evaluation.is_alone() {
        return Ok(());
    }
    // A delayed copy waits for a node that may be back at any moment.
    let waits = health.initializing + health.relocating + health.delayed + health.in_flight_fetch;
    if !health.timed_out && waits == 0 && evaluation.is_behind(candidate) {
        return Ok(());
    }
    evaluation.settled.check().map_err(|blocker| {
        let message = format!(
            "{} is not stopped: {}; {}",
            candidate.name(),
            blocker.message,
            disable_hint(Predicate::Yellow)
        );
        Blocker { message, ..blocker }
    })
}
