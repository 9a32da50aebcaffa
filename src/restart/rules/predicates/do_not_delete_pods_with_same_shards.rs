//! Nodes that hold the same shard are not down at the same time.

use super::{Blocker, Check, Evaluation, Peer, Predicate, block};

/// A node is not stopped while another node under way holds a copy of one of its shards.
///
/// In place this includes nodes whose slot was taken earlier. Nodes of one batch may share shards, as
/// long as copies stay elsewhere: `require_started_replica` checks that.
pub(super) fn do_not_delete_pods_with_same_shards(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if evaluation.under_way().is_empty() {
        return Ok(());
    }
    let shared = evaluation
        .copies()
        .shared(candidate.name(), evaluation.under_way())
        .map_err(Blocker::engine_unreachable)?;
    match shared {
        None => Ok(()),
        Some((shard, other)) => block(
            Predicate::SameShards,
            format!(
                "{} and {other} both hold {shard}, and {other} is being restarted: waits until it is \
                 back",
                candidate.name()
            ),
        ),
    }
}
