//! How a StatefulSet replaces its pods, as its controller reads it.

use k8s_openapi::api::apps::v1::StatefulSet;

use crate::controller::pods::Facts;
use crate::workload::{first_ordinal, is_on_delete, ordinal, unseen_generation};

/// What of a StatefulSet decides whether it replaces a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rollout {
    name: String,
    /// The revision that is rolled out; none before the controller has first seen the set.
    revision: Option<String>,
    /// The least ordinal that is replaced; none if pods are replaced only after they were deleted.
    replaced_from: Option<i64>,
    /// The version of its spec that the controller has not seen yet.
    unseen: Option<i64>,
}

impl Rollout {
    /// Reads the strategy as the controller does: the partition counts from the first ordinal.
    pub(super) fn of(set: &StatefulSet) -> Self {
        let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref()?.partition)
            .unwrap_or_default();
        let status = set.status.as_ref();
        Self {
            name: set.metadata.name.clone().unwrap_or_default(),
            revision: status.and_then(|status| status.update_revision.clone()),
            replaced_from: (!is_on_delete(set)).then(|| first_ordinal(set) + i64::from(partition)),
            unseen: unseen_generation(set),
        }
    }

    /// Why it is going to replace the pod, or may be, and what to do; none if it is not.
    pub(super) fn replaces(&self, pod: &Facts, revision: &str) -> Option<String> {
        let (name, set) = (&pod.name, &self.name);
        // A name without a number is not one of its pods' names: then nothing exempts it.
        let ordinal = ordinal(&pod.name);
        let is_covered =
            self.replaced_from.is_some_and(|first| ordinal.is_none_or(|ordinal| ordinal >= first));
        if !is_covered {
            return None;
        }
        if let Some(generation) = self.unseen {
            return Some(format!(
                "StatefulSet {set} has changed, and its controller has not seen the change yet \
                 (generation {generation}), so it may be about to replace {name}: waits until it \
                 has; if that takes long, check that kube-controller-manager runs"
            ));
        }
        let rolled_out = self.revision.as_deref().filter(|rolled_out| *rolled_out != revision)?;
        Some(format!(
            "the template of StatefulSet {set} has changed and {name} has an older revision than \
             {rolled_out}: the StatefulSet replaces the pod, which restarts the engine as well; \
             `kubectl rollout status statefulset/{set}` shows how far it is; to keep the pods and \
             restart in place, set spec.updateStrategy.type of the StatefulSet to OnDelete, or its \
             partition above the ordinals of these pods"
        ))
    }
}
