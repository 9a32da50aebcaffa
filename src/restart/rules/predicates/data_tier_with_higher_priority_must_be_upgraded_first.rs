//! Data tiers go in the order frozen, cold, warm, hot.

use super::{Check, Evaluation, Peer, Predicate, block, disable_hint};
use crate::rules::name_list::NameList;

/// The frozen tier goes first, then the cold, warm and hot tiers, so that data can move on through
/// the tiers while their nodes run on different configs.
///
/// In place no version separates old from new nodes, so a node waits for those that are still to be
/// restarted. A node that does not serve moves no data and does not wait.
pub(super) fn data_tier_with_higher_priority_must_be_upgraded_first(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let Some(tiers) = candidate.tiers.filter(|_| candidate.is_healthy) else {
        return Ok(());
    };
    let mut before = NameList::default();
    for (other, nodes) in &evaluation.counts.requested_tiers {
        if tiers.wait_for(*other) {
            before.extend(nodes);
        }
    }
    if before.count == 0 {
        return Ok(());
    }
    block(
        Predicate::DataTier,
        format!(
            "{} waits for {before}: data tiers go in the order frozen, cold, warm, hot, so that \
             data can move to the next tier; {}",
            candidate.name(),
            disable_hint(Predicate::DataTier)
        ),
    )
}
