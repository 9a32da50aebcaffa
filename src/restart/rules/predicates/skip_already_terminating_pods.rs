//! A pod that is being deleted is on its way already.

use super::{Gate, Pass, Peer, Predicate, no};

/// A pod that is being deleted is left alone: the one in its place will start on what is mounted
/// then.
pub(super) fn skip_already_terminating_pods(_: &Pass<'_>, candidate: &Peer<'_>) -> Gate {
    if !candidate.pod.terminating {
        return Ok(());
    }
    let sentence = format!(
        "the pod {} is being deleted; the pod that replaces it is a new one",
        candidate.pod.name
    );
    no(Predicate::Terminating, sentence)
}
