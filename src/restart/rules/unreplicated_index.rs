//! An index without replicas: its shards are unavailable while their node is down.

use super::{evaluation::Evaluation, peer::Peer};
use crate::Code;
use crate::blocker::{Blocker, Check, refuse};

/// A node that holds the only copy of a shard whose index has no replicas is not stopped, unless an
/// outage is allowed: waiting would not help. The published rules allow such a stop.
pub(super) fn check(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.policy.allow_outage {
        return Ok(());
    }
    let down = evaluation.others_down(candidate);
    let lost =
        evaluation.copies().lost(candidate.name(), &down).map_err(Blocker::engine_unreachable)?;
    match lost.single.first() {
        None => Ok(()),
        Some(shard) => refuse(
            Code::UnreplicatedIndex,
            format!(
                "{} holds the only copy of {shard}, which has no replica{}: add a replica \
                 (index.number_of_replicas); as a last resort, spec.restart.allowOutage: true \
                 accepts that it is unavailable until the node is back",
                candidate.name(),
                super::more_shards(lost.single.len())
            ),
        ),
    }
}
