//! An index without replicas: its shards cannot be kept.

use super::evaluation::{Evaluation, Peer};
use crate::Code;
use crate::blocker::{Blocker, Check, refuse};

/// A node is not stopped while it holds the only copy of a shard whose index has no replicas, unless
/// an outage is allowed: no waiting would help. The published rules tolerate it.
pub(super) fn unreplicated_index(pass: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if pass.policy.allow_outage {
        return Ok(());
    }
    let down = pass.others_down(candidate);
    let lost = pass.copies().lost(candidate.name(), &down).map_err(Blocker::engine_unreachable)?;
    match lost.single.first() {
        None => Ok(()),
        Some(shard) => refuse(
            Code::UnreplicatedIndex,
            format!(
                "{} holds the only copy of {shard}, which has no replica{}: give it one \
                 (index.number_of_replicas), or set spec.restart.allowOutage: true to do without \
                 it until the node is back",
                candidate.name(),
                super::others(lost.single.len())
            ),
        ),
    }
}
