//! Pods that the selector does not mean any more, since it was edited or their labels were, while something is
//! owed to them. Only the apiserver can say that such a pod is gone.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::SearchCluster;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::pods::{Facts, Pods, Reading};
use stayput_restart::{Ledger, annotation};

/// Reads those of the ledger that the watch does not have, and those that still show a phase of ours.
///
/// # Errors
/// The apiserver does not tell whether such a pod is there.
pub(super) async fn read(
    api: &Apiserver,
    cluster: &SearchCluster,
    pods: &Pods,
) -> Result<Vec<Facts>, ApiError> {
    let Some(status) = &cluster.status else { return Ok(Vec::new()) };
    let unselected = pods.unselected();
    let shown = unselected.filter(|facts| facts.annotations.contains_key(annotation::SHOWN));
    let shown = shown.map(|facts| (facts.name.as_str(), facts.uid.as_str()));
    let due: BTreeSet<(&str, &str)> =
        owed(&status.ledger).chain(shown).filter(|(name, _)| !pods.selects(name)).collect();
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let reading = Reading::of(&cluster.spec);
    let read = async |name: &str, uid: &str| -> Result<Option<Facts>, ApiError> {
        let found: Option<Pod> = api.find(namespace, name).await?;
        let facts = found.and_then(|pod| Facts::of(&pod, &reading));
        Ok(facts.filter(|facts| facts.uid == uid))
    };
    let found = join_limited(due.into_iter().map(|(name, uid)| read(name, uid)).collect()).await;
    found.into_iter().filter_map(Result::transpose).collect()
}

/// Name and uid of each pod that is under way, or must be started. A debt has only the name of the node.
fn owed(ledger: &Ledger) -> impl Iterator<Item = (&str, &str)> {
    let members = ledger.under_way().map(|member| (member.pod.as_str(), member.pod_uid.as_str()));
    let debts = ledger.debts.start.iter();
    members.chain(debts.map(|debt| (debt.node.as_str(), debt.pod_uid.as_str())))
}
