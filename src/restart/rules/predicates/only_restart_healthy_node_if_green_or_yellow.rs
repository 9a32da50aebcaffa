//! Never a healthy node while the cluster is red.

use super::{Blocker, Check, Evaluation, Peer, Predicate, no, or_else};
use crate::Color;

/// A node that serves is restarted only while the cluster's health is green or yellow, never while
/// it is red or of a color that nobody knows. A node that does not serve may be what makes it red.
pub(super) fn only_restart_healthy_node_if_green_or_yellow(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.healthy {
        return Ok(());
    }
    let health = pass.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    let state = match health.color {
        Color::Green | Color::Yellow => return Ok(()),
        Color::Red => format!(
            "the cluster is red, a primary is missing ({} shard copies are unassigned; GET \
             _cluster/allocation/explain tells why)",
            health.unassigned
        ),
        Color::Unknown => {
            "the engine says that its health is neither green nor yellow nor red".to_owned()
        }
    };
    no(
        Predicate::GreenOrYellow,
        format!(
            "{} is not stopped: {state}: waits until it is yellow at least; {}",
            candidate.name(),
            or_else(Predicate::GreenOrYellow)
        ),
    )
}
