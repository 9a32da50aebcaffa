//! A healthy node is not restarted while the cluster is red.

use super::{Blocker, Check, Evaluation, Peer, Predicate, block, disable_hint};
use crate::Color;

/// A node that serves is restarted only while the cluster's health is green or yellow, never while it
/// is red or unknown. A node that does not serve may be the cause of red.
pub(super) fn only_restart_healthy_node_if_green_or_yellow(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.is_healthy {
        return Ok(());
    }
    let health = evaluation.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    let state = match health.color {
        Color::Green | Color::Yellow => return Ok(()),
        Color::Red => format!(
            "the cluster is red, a primary is missing ({} shard copies are unassigned; GET \
             _cluster/allocation/explain shows the reason)",
            health.unassigned
        ),
        Color::Unknown => {
            "the health of the cluster is neither green nor yellow nor red".to_owned()
        }
    };
    block(
        Predicate::GreenOrYellow,
        format!(
            "{} is not stopped: {state}: waits until it is green or yellow; {}",
            candidate.name(),
            disable_hint(Predicate::GreenOrYellow)
        ),
    )
}
