//! Finds out if a StatefulSet replaces a pod by itself.

#[cfg(test)]
mod tests;

use super::{Set, ordinal};

/// Reason to expect that the set replaces the pod, which was made from `revision`, or may do so, and what to
/// do.
pub fn replaces(set: &Set, namespace: &str, name: &str, revision: &str) -> Option<String> {
    // A name without an ordinal is no name of the set's pods: then nothing exempts it.
    let ordinal = ordinal(name);
    let is_covered =
        set.replaced_from.is_some_and(|first| ordinal.is_none_or(|ordinal| ordinal >= first));
    if !is_covered {
        return None;
    }
    let command = set.on_delete_command(namespace);
    let owner = &set.name;
    if let Some(generation) = set.unseen {
        return Some(format!(
            "StatefulSet {owner} has changed, and its controller has not seen the change yet \
             (generation {generation}), so it may be about to replace {name}: waits until it has; \
             if that takes long, check that kube-controller-manager runs"
        ));
    }
    let rolled_out = set.revision.as_deref().filter(|rolled_out| *rolled_out != revision)?;
    Some(format!(
        "the template of StatefulSet {owner} has changed and {name} has an older revision than \
         {rolled_out}: the StatefulSet replaces the pod, which restarts the engine as well; \
         `kubectl -n {namespace} rollout status statefulset/{owner}` shows how far it is; to keep the pods and \
         restart in place, set the update strategy to OnDelete: `{command}`, or its partition above \
         the ordinals of these pods"
    ))
}
