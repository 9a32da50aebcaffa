//! Deletes the config Secrets of node sets that are gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;

use super::read::{is_owned, node_set};
use crate::apiserver::{ApiError, Apiserver};
use stayput_declare::{self as declare, Observed, SeenSecret, garbage};
use stayput_kube_access::workload::mounted_secrets;

/// Deletes the Secrets that are due, and returns the time since which each of the others is unneeded, by uid.
pub(super) async fn collect(
    api: &Apiserver,
    cluster: &declare::Cluster,
    observed: &Observed,
    since: &BTreeMap<String, u64>,
    now: u64,
) -> Result<BTreeMap<String, u64>, ApiError> {
    let secrets = api.secrets(&cluster.namespace, &cluster.name).await?;
    let own = secrets.items.iter().filter(|secret| is_owned(&secret.metadata, &cluster.uid));
    let mut seen: Vec<SeenSecret> = own.filter_map(seen_secret).collect();
    let (_, candidates) = garbage(cluster, observed, &seen, since, now);
    if candidates.is_empty() {
        return Ok(candidates);
    }
    let pods = api.pods(&cluster.namespace).await?;
    let mounted: BTreeSet<&str> = pods.items.iter().flat_map(mounted_secrets).collect();
    for secret in &mut seen {
        secret.mounted = mounted.contains(secret.name.as_str());
    }
    let (due, since) = garbage(cluster, observed, &seen, since, now);
    for secret in due {
        match api.delete_secret(&cluster.namespace, &secret.name, &secret.uid).await {
            Ok(()) => tracing::info!("deleted Secret {} of a removed node set", secret.name),
            // The Secret is gone, or another one has its name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(since)
}

fn seen_secret(secret: &Secret) -> Option<SeenSecret> {
    let metadata = &secret.metadata;
    Some(SeenSecret {
        name: metadata.name.clone()?,
        uid: metadata.uid.clone()?,
        node_set: node_set(metadata)?.clone(),
        mounted: false,
    })
}
