//! Whether the owner of a pod is about to replace it: then a restart in place would be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::Ages;
use crate::controller::apiserver::{Apiserver, Failure};
use crate::controller::bounded::together;
use crate::controller::pods::Facts;

/// What is known of the StatefulSets that own pods.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// By name: when it was read, and the revision its pods shall have; none if it is gone.
    known: BTreeMap<String, (Instant, Result<Option<String>, String>)>,
}

impl Owners {
    /// Reads those that matter now.
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
                Ok(set) => Ok(set.status.and_then(|status| status.update_revision)),
                Err(Failure::NotFound(_)) => Ok(None),
                Err(failure) => Err(failure.to_string()),
            };
            (name.to_owned(), (Instant::now(), answer))
        };
        self.known.extend(together(due.into_iter().map(read).collect()).await);
    }

    /// Why the owner is going to replace the pod, if it is, in a sentence.
    pub(super) fn outdated(&self, pod: &Facts) -> Option<String> {
        let owner = pod.owner.as_ref()?;
        match &self.known.get(&owner.name)?.1 {
            Ok(Some(revision)) if *revision != owner.revision => Some(format!(
                "{} is of another revision of StatefulSet {} than the one rolled out now \
                 ({revision}): its owner, or whoever set that in motion, is going to replace the \
                 pod, which restarts it as well",
                pod.name, owner.name
            )),
            Ok(_) => None,
            Err(why) => Some(format!(
                "whether the owner of {} is about to replace it cannot be told: {why}",
                pod.name
            )),
        }
    }
}
