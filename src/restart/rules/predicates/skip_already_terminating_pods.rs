//! A pod that is being deleted is on its way already.

use super::{Check, Evaluation, Peer, Predicate, no};

/// A pod that is being deleted is left alone: the one in its place will start on what is mounted
/// then.
pub(super) fn skip_already_terminating_pods(_: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.pod.terminating {
        return Ok(());
    }
    let message = format!(
        "the pod {} is being deleted; the pod that replaces it is a new one",
        candidate.pod.name
    );
    no(Predicate::Terminating, message)
}
