//! Makes a snapshot for people: observes everything as in a reconcile, and changes nothing.

use std::collections::BTreeSet;

use super::context::Context;
use super::effective_spec::EffectiveSpec;
use super::observe::Scope;
use super::snapshot_requests::{Answer, SnapshotError};
use stayput_kube_access::random_id::random_id;
use stayput_restart::Saved;

/// Observes everything now. Reads the managers and the engine, and of the apiserver the Secrets, ConfigMaps
/// and owners.
pub(super) async fn snapshot(cx: &mut Context) -> Answer {
    let cluster = cx.cluster.newest().ok_or(SnapshotError::Deleted)?;
    // Fields that the apiserver drops do not matter here: nothing is written.
    let spec = EffectiveSpec::resolve(&cluster, cx.last_valid.as_ref(), None)
        .map_err(|refusal| SnapshotError::InvalidSpec(refusal.message))?;
    let cluster = spec.apply(cluster);
    if !cx.observer.pods.is_complete() {
        let error = cx.pod_watch.error().unwrap_or("its pods are not listed yet: try again");
        return Err(SnapshotError::PodsUnlisted(error.to_owned()));
    }
    let others = cx.cluster.others();
    let scope = Scope {
        cluster: &cluster,
        checked: &spec.checked,
        others: &others,
        must_read: &BTreeSet::new(),
        with_engine: true,
    };
    let snapshot = Box::pin(cx.observer.observe(&scope, random_id()?)).await;
    Ok(Box::new(Saved::new(snapshot, spec.checked.policy.clone())))
}
