//! The last master-eligible node goes after all others.

use super::{Check, Evaluation, Peer, Predicate, no, or_else};

/// The last master-eligible node to be restarted waits until all nodes that are none are done: the
/// cluster keeps a master of before for them as long as it can.
///
/// In place a node that does not serve is no master of before, and does not wait: the others may be
/// waiting for it, if it is the only one.
pub(super) fn do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let own = usize::from(candidate.wanted && !candidate.together);
    let others = &pass.census.wanted_others;
    let is_last = candidate.is_master() && candidate.healthy && pass.census.wanted_masters <= own;
    if !is_last || others.count == 0 {
        return Ok(());
    }
    no(
        Predicate::LastMaster,
        format!(
            "{} is the last master-eligible node to be restarted and goes after all others: waits \
             for {others}; {}",
            candidate.name(),
            or_else(Predicate::LastMaster)
        ),
    )
}
