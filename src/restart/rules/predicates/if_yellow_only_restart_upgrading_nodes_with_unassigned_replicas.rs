//! While the cluster is yellow, only what waiting would not make greener.

use super::{Blocker, Check, Evaluation, Peer, Predicate, or_else};
use crate::Color;

/// In a yellow cluster a node that serves is restarted only if waiting would not help: because it
/// runs an older version than others do, so that replicas cannot be placed on it, and no shard is
/// on the move; or because the cluster is settled, with nothing under way and nobody missing.
///
/// In place the versions of the running nodes are compared, and *settled* yellow passes where plain
/// yellow would wait for ever. The only node of a cluster is always yellow at most.
pub(super) fn if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.healthy {
        return Ok(());
    }
    let health = pass.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    let is_alone = pass.peers().len() == 1 && pass.engine.nodes.len() == 1;
    if health.color != Color::Yellow || is_alone {
        return Ok(());
    }
    let quiet =
        !health.timed_out && health.initializing + health.relocating + health.in_flight_fetch == 0;
    if quiet && pass.is_behind(candidate) {
        return Ok(());
    }
    pass.settled.gate().map_err(|refusal| {
        let message = format!(
            "{} is not stopped: {}; {}",
            candidate.name(),
            refusal.message,
            or_else(Predicate::Yellow)
        );
        Blocker { message, ..refusal }
    })
}
