//! Frozen before cold before warm before hot.

use super::{Check, Evaluation, Peer, Predicate, no, or_else};
use crate::rules::name_list::NameList;
use crate::rules::tiers::Tiers;

/// The frozen tier goes first, then the cold one, then the warm one, and the hot one last, so that
/// data can move on through the tiers while their nodes run on different configs.
///
/// In place no version tells old from new, so what counts is who is still to be restarted. A node
/// that does not serve moves no data and does not wait.
pub(super) fn data_tier_with_higher_priority_must_be_upgraded_first(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let Some(tiers) = candidate.node.and_then(Tiers::of).filter(|_| candidate.healthy) else {
        return Ok(());
    };
    let mut before = NameList::default();
    for (other, nodes) in &pass.census.wanted_tiers {
        if tiers.wait_for(*other) {
            before.extend(nodes);
        }
    }
    if before.count == 0 {
        return Ok(());
    }
    no(
        Predicate::DataTier,
        format!(
            "{} waits for {before}: data tiers go in the order frozen, cold, warm, hot, so that \
             data can move on meanwhile; {}",
            candidate.name(),
            or_else(Predicate::DataTier)
        ),
    )
}
