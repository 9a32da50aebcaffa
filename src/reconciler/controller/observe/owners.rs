//! Whether the owner of a pod is about to replace it: then a restart in place would be for nothing.

mod rollout;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::ages::Ages;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::pods::Facts;
use rollout::Rollout;

/// The StatefulSets that own pods, as they were read.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// By name: when it was read, and how it replaces its pods; none if it is gone.
    known: BTreeMap<String, (Instant, Result<Option<Rollout>, ApiError>)>,
}

impl Owners {
    /// Reads those that are due.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        pods: &[Arc<Facts>],
        ages: &Ages<'_>,
    ) {
        let due: BTreeSet<&str> = pods
            .iter()
            .filter_map(|pod| Some((pod, pod.owner.as_ref()?.name.as_str())))
            .filter(|(pod, name)| {
                ages.is_over(&pod.uid, self.known.get(*name).map(|(read, _)| *read))
            })
            .map(|(_, name)| name)
            .collect();
        let read = async |name: &str| {
            let answer = match api.stateful_set(namespace, name).await {
                Ok(set) => Ok(Some(Rollout::of(&set))),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            };
            (name.to_owned(), (Instant::now(), answer))
        };
        self.known.extend(join_limited(due.into_iter().map(read).collect()).await);
    }

    /// Why the owner is going to replace the pod, or may be; none if it is not.
    pub(super) fn outdated(&self, pod: &Facts) -> Option<String> {
        let owner = pod.owner.as_ref()?;
        match &self.known.get(&owner.name)?.1 {
            Ok(set) => set.as_ref()?.replaces(pod, &owner.revision),
            Err(error) => Some(format!(
                "cannot find out whether the owner of {} is about to replace it: {error}",
                pod.name
            )),
        }
    }
}
