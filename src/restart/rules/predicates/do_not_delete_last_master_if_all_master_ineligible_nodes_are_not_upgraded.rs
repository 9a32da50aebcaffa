//! The last master-eligible node goes after all other nodes.

use super::{Check, Evaluation, Peer, Predicate, block, disable_hint};

/// The last master-eligible node to be restarted waits until all other nodes are done, so that the
/// cluster keeps a master that was not restarted as long as possible.
///
/// In place a node that does not serve does not wait: if it is the only one, the others may be
/// waiting for it.
pub(super) fn do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let own = usize::from(candidate.is_requested && !candidate.is_in_batch);
    let others = &evaluation.counts.requested_others;
    let is_last =
        candidate.is_master && candidate.is_healthy && evaluation.counts.requested_masters <= own;
    if !is_last || others.count == 0 {
        return Ok(());
    }
    block(
        Predicate::LastMaster,
        format!(
            "{} is the last master-eligible node to be restarted and goes after all others: waits \
             for {others}; {}",
            candidate.name(),
            disable_hint(Predicate::LastMaster)
        ),
    )
}
