//! One look: the facts for a decision, read together.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::is_same_generation;
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::failure::Failure;
use crate::observe::Scope;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::random_id::random_id;
use stayput_restart::Snapshot;

/// Result of a look.
pub(super) enum LookResult {
    Snapshot(Box<Snapshot>),
    /// The observation is of an older version of the SearchCluster.
    Again,
    /// Another spec counts now.
    OtherSpec,
}

/// Observes managers, engine and apiserver; if `reads_live`, reads the SearchCluster at the same time:
/// decisions are made on the live one, which is usually unchanged. `must_read` and `with_engine` are those of
/// the [`Scope`].
pub(super) async fn look(
    cx: &mut Context,
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
    must_read: &BTreeSet<String>,
    with_engine: bool,
    reads_live: bool,
) -> Result<LookResult, Failure> {
    let (api, known) = (cx.clients.api.clone(), Arc::clone(cluster));
    let live = async { if reads_live { api.cluster_of(&known).await.map(Some) } else { Ok(None) } };
    let (live, snapshot) = tokio::join!(live, observe(cx, &known, spec, must_read, with_engine));
    if let Some(live) = live? {
        let is_known = live.metadata.resource_version == known.metadata.resource_version;
        let is_same_spec = is_same_generation(&live, &known)
            && live.disabled_by_annotation() == known.disabled_by_annotation();
        let live = cx.cluster.replace(live);
        if !is_same_spec {
            return Ok(LookResult::OtherSpec);
        }
        *cluster = live;
        if !is_known {
            return Ok(LookResult::Again);
        }
    }
    Ok(LookResult::Snapshot(Box::new(snapshot?)))
}

async fn observe(
    cx: &mut Context,
    cluster: &SearchCluster,
    spec: &EffectiveSpec,
    must_read: &BTreeSet<String>,
    with_engine: bool,
) -> Result<Snapshot, Failure> {
    let others = cx.cluster.others();
    let scope = Scope { cluster, checked: &spec.checked, others: &others, must_read, with_engine };
    Ok(Box::pin(cx.observer.observe(&scope, random_id()?)).await)
}
