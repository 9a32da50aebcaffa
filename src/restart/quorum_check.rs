//! The quorum rule alone, for one node of an observed cluster. Only tests of the reconciler use it: they
//! check that the rule reads the answers of real engines correctly.

use std::collections::BTreeSet;

use super::rules::{self, MasterVoters};
use super::{Code, Engine};

/// Effect of the stop of one node on the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumAfterStop {
    /// Enough votes are left.
    Kept,
    /// The node has the only vote. Enough are left once this node votes in its place.
    KeptByHandover(String),
    /// No master could be elected, or the effect is not known: code and message of the rule.
    Lost(Code, String),
}

/// Effect of the stop of `node` on the quorum while the nodes `down` are stopped or being stopped. All
/// are names of nodes. `cluster` is the SearchCluster, as `namespace/name`, for the message.
pub fn quorum_after_stop(
    cluster: &str,
    engine: &Engine,
    node: &str,
    down: &BTreeSet<String>,
) -> QuorumAfterStop {
    let down = down.iter().cloned().collect();
    match MasterVoters::of(engine, cluster).after_stop(node, &down, None) {
        rules::QuorumAfterStop::Kept => QuorumAfterStop::Kept,
        rules::QuorumAfterStop::KeptByHandover(to) => QuorumAfterStop::KeptByHandover(to),
        rules::QuorumAfterStop::Lost(blocker) => {
            QuorumAfterStop::Lost(blocker.code, blocker.message)
        }
    }
}
