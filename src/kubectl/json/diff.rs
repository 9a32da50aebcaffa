//! The JSON of `diff`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::diff::{Diff, Wanted};

/// `diff`: each pod against what its owner wants.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffOutput {
    cluster: String,
    namespace: String,
    pods: Vec<PodDiffOutput>,
    /// StatefulSets that replace their pods by themselves.
    rolling_stateful_sets: Vec<String>,
}

/// One pod.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PodDiffOutput {
    pod: String,
    /// Name of its engine node.
    node: String,
    /// `none`, `relabel`, `restart`, `container`, `resize`, `replace` or `move`; absent if the pod
    /// cannot be compared, or if its owner removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    /// The part of the pod that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<&'static str>,
    /// Why the pod cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
    /// Why its owner removes the pod, and what becomes of its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<String>,
    /// Every field that differs, those that ask for the highest step first.
    because: Vec<DifferenceOutput>,
}

/// A field that differs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DifferenceOutput {
    field: String,
    /// At most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The wanted value, in at most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// The step that this field alone needs.
    step: &'static str,
}

impl DiffOutput {
    pub(crate) fn new(diff: &Diff) -> Self {
        let pods = diff.pods.iter().map(|pod| {
            let update = pod.wanted.update();
            let because = update.map_or(&[][..], |update| &update.because);
            PodDiffOutput {
                pod: pod.pod.clone(),
                node: pod.node.clone(),
                step: update.map(|update| update.step.name()),
                kept: update.map(|update| update.step.keeps()),
                unknown: match &pod.wanted {
                    Wanted::Unknown(reason) => Some(reason.to_string()),
                    Wanted::Update(_) | Wanted::Removed(_) => None,
                },
                removed: match &pod.wanted {
                    Wanted::Removed(why) => Some(why.clone()),
                    Wanted::Update(_) | Wanted::Unknown(_) => None,
                },
                because: because
                    .iter()
                    .map(|each| DifferenceOutput {
                        field: each.field.clone(),
                        from: each.from.clone(),
                        to: each.to.clone(),
                        step: each.step.name(),
                    })
                    .collect(),
            }
        });
        Self {
            cluster: diff.cluster.clone(),
            namespace: diff.namespace.clone(),
            pods: pods.collect(),
            rolling_stateful_sets: diff.rolling.iter().map(|set| set.name.clone()).collect(),
        }
    }
}
