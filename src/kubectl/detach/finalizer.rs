//! A finalizer of this command: the SearchCluster stays until stayput's annotations are removed. A
//! command that was interrupted is repeated, and goes on.

use json_patch::Patch;
use kube::ResourceExt;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::patch_operations::{is_at_version, set_finalizers};

use crate::actions::attempts::Attempts;
use crate::apiserver;
use crate::detach::error::DetachError;
use crate::session::Session;

/// Finalizer of `detach`.
const DETACH: &str = "stayput.dev/detach";

/// Adds the finalizer, unless the SearchCluster is being deleted already: then none can be added.
pub(crate) async fn add(session: &Session, cluster: &str) -> Result<(), DetachError> {
    change(session, cluster, |finalizers, is_deleting| {
        let is_there = finalizers.iter().any(|one| one == DETACH);
        (!is_there && !is_deleting).then(|| [finalizers, &[DETACH.to_owned()]].concat())
    })
    .await
}

/// Removes the finalizer.
pub(crate) async fn remove(session: &Session, cluster: &str) -> Result<(), DetachError> {
    change(session, cluster, |finalizers, _| {
        let others: Vec<String> = finalizers.iter().filter(|one| *one != DETACH).cloned().collect();
        (others.len() < finalizers.len()).then_some(others)
    })
    .await
}

/// Changes the finalizers of the SearchCluster as it is now, if it is there.
async fn change(
    session: &Session,
    name: &str,
    wanted: impl Fn(&[String], bool) -> Option<Vec<String>>,
) -> Result<(), DetachError> {
    let mut attempts = Attempts::default();
    loop {
        let all = apiserver::clusters(session).await?;
        let Some(cluster) = all.into_iter().find(|one| one.name_any() == name) else {
            return Ok(());
        };
        let is_deleting = cluster.metadata.deletion_timestamp.is_some();
        let Some(finalizers) = wanted(cluster.finalizers(), is_deleting) else { return Ok(()) };
        let version = cluster.metadata.resource_version.as_deref().unwrap_or_default();
        attempts.next("SearchCluster", name, version)?;
        match apiserver::patch_cluster(session, name, patch(&cluster, &finalizers)).await {
            Ok(()) => return Ok(()),
            Err(error) => attempts.refused(version, error)?,
        }
    }
}

fn patch(cluster: &SearchCluster, finalizers: &[String]) -> Patch {
    let version = cluster.metadata.resource_version.as_deref();
    Patch(vec![is_at_version(version), set_finalizers(finalizers)])
}
