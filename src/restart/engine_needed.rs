//! Decides if the engine has to be read for a decision. At rest it is not.

use super::late_requests::ended_recently;
use super::{Pod, Request, Snapshot, annotation, needs_coordinated};

/// True if a decision may depend on the engine's view, so that it must be read.
pub fn needs_engine(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    let phase = |pod: &Pod| pod.annotations.contains_key(annotation::PHASE);
    let is_kept_stopped = |pod: &Pod| pod.annotations.contains_key(annotation::STOPPED);
    let asked = snapshot.cluster.annotations.get(annotation::REQUEST).is_some_and(|text| {
        Request::parse(text).is_ok_and(|request| !ledger.has_handled(&request.id))
    });
    ended_recently(snapshot)
        || asked
        || ledger.restart.is_some()
        || ledger.queued.is_some()
        || !ledger.debts.is_empty()
        || !ledger.kept_stopped.is_empty()
        || ledger.removed_exclusions.iter().any(|removed| removed.may_come_again(snapshot.now))
        || !snapshot.cluster.stopped.is_empty()
        || snapshot.pods.iter().any(|pod| phase(pod) || is_kept_stopped(pod))
}

/// True if the engine is to be read: for a decision; while a pod is not ready or missing, because only
/// the engine knows if the node is in the cluster and what its absence costs; and while the engine's
/// version decides how a config can be changed.
pub fn reads_engine(snapshot: &Snapshot) -> bool {
    needs_engine(snapshot)
        || !snapshot.missing.is_empty()
        || snapshot.pods.iter().any(|pod| !pod.ready)
        || needs_coordinated::needs_version(snapshot)
}
