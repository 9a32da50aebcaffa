//! A pod that is being deleted is not restarted.

use super::{Check, Evaluation, Peer, Predicate, block};

/// A pod that is being deleted is left alone: the pod that replaces it starts on the new config.
pub(super) fn skip_already_terminating_pods(_: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.pod.terminating {
        return Ok(());
    }
    let message = format!("the pod {} is being deleted", candidate.pod.name);
    block(Predicate::Terminating, message)
}
