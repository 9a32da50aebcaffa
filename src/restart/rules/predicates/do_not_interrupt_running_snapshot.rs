//! No node is stopped while a snapshot is being taken of its shards.

use super::{Check, Evaluation, Peer, Predicate, block};

/// Longest wait for a snapshot, counted from its beginning, in milliseconds: the snapshot may hang, and a
/// node that can never be stopped is the greater risk.
const LONGEST: u64 = 6 * 60 * 60 * 1000;

/// A node that serves waits until the engine has read the data of its shards that the snapshot needs. A stop
/// would end the snapshot as `PARTIAL`: those shards would be missing in it.
///
/// Shards of the snapshot that are on other nodes, or are read already, do not count.
pub(super) fn do_not_interrupt_running_snapshot(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let Some(node) = candidate.node.filter(|_| candidate.serves) else { return Ok(()) };
    let Some(running) = &node.snapshot else { return Ok(()) };
    let until = running.since.plus(LONGEST);
    if until <= evaluation.now {
        return Ok(());
    }
    let shards = match running.shards {
        1 => "1 shard".to_owned(),
        many => format!("{many} shards"),
    };
    block(
        Predicate::RunningSnapshot,
        format!(
            "the snapshot {} is being taken of {shards} on {}, and would lack them (PARTIAL): waits \
             until they are read, at most until {until}; a request with skipRules (--skip-rule {}) \
             does not wait",
            running.name,
            candidate.name(),
            Predicate::RunningSnapshot.name(),
        ),
    )
}
