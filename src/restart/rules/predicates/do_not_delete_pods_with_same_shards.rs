//! No two nodes at once that hold the same shard.

use super::{Blocker, Check, Evaluation, Peer, Predicate, no};

/// A node is not stopped while another one is under way that holds a copy of one of its shards.
///
/// In place this counts those under way from an earlier look as well. Nodes that go together may
/// share shards, as long as copies stay elsewhere: that is the matter of `require_started_replica`.
pub(super) fn do_not_delete_pods_with_same_shards(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if pass.under_way().is_empty() {
        return Ok(());
    }
    let shared = pass
        .copies()
        .shared(candidate.name(), pass.under_way())
        .map_err(Blocker::engine_unreachable)?;
    match shared {
        None => Ok(()),
        Some((shard, other)) => no(
            Predicate::SameShards,
            format!(
                "{} and {other}, which is on its way, both hold {shard}: waits until that is back",
                candidate.name()
            ),
        ),
    }
}
