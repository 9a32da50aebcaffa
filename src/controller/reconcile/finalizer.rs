//! Puts the finalizer there before the write that opens a restart: then the first node gets its slot in that
//! write, too.

use std::sync::Arc;

use super::execute;
use crate::clusters::asks_for_the_same;
use crate::context::Context;
use crate::failure::Failure;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Action, Ledger, Snapshot};

/// True if this ledger opens a restart and there is no finalizer.
pub(super) fn is_due(snapshot: &Snapshot, ledger: &Ledger) -> bool {
    !snapshot.cluster.finalizer && snapshot.ledger.restart.is_none() && ledger.restart.is_some()
}

/// Adds the finalizer to the SearchCluster. False if that fails: then the restart is opened, and waits for
/// it.
///
/// # Errors
/// [`Failure::StatusOvertaken`] if the SearchCluster is not the one that was planned for.
pub(super) async fn put(
    cx: &mut Context,
    snapshot: &mut Snapshot,
    cluster: &mut Arc<SearchCluster>,
) -> Result<bool, Failure> {
    let mut expected = SearchCluster::clone(cluster);
    if execute(cx, &[&Action::AddFinalizer], cluster).await.is_err() {
        return Ok(false);
    }
    expected.metadata.finalizers.clone_from(&cluster.metadata.finalizers);
    if !asks_for_the_same(&expected, cluster) {
        return Err(Failure::StatusOvertaken);
    }
    snapshot.cluster.finalizer = true;
    Ok(true)
}
