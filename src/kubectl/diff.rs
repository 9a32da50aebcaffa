//! `diff`: compares the template from which each pod was made with the one that its owner wants now, and
//! shows the cheapest step between them. Reads StatefulSets and their revisions; changes nothing.

mod read;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::workload::{NotComparable, Set, ordinal};
use stayput_pod_update::{Difference, Update, UpdateStep};
use stayput_restart::{NodeReport, THE_CONFIG};

pub(crate) use crate::diff::read::read;

/// Result of the comparison of a pod.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The step that brings the pod to the wanted template.
    Update(Update),
    /// The owner removes the pod by itself: the reason, and the consequence for its data.
    Removed(String),
    /// The pod cannot be compared.
    Unknown(NotComparable),
}

/// `diff`: each pod against what its owner wants.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DiffOutput")]
pub(crate) struct Diff {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    /// Sorted by name.
    pub(crate) pods: Vec<PodDiff>,
    /// StatefulSets that replace their pods by themselves, so that only the step `replace` is left.
    pub(crate) rolling_stateful_sets: Vec<String>,
    /// For each of these StatefulSets, the command after which it keeps its pods.
    #[serde(skip)]
    pub(crate) on_delete: Vec<String>,
}

/// One pod.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PodDiffOutput")]
pub(crate) struct PodDiff {
    pub(crate) pod: String,
    /// Name of its engine node.
    pub(crate) node: String,
    /// `none`, `relabel`, `restart`, `container`, `resize`, `replace` or `move`; absent if the pod
    /// cannot be compared, or if its owner removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<&'static str>,
    /// The part of the pod that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<&'static str>,
    /// Why the pod cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<String>,
    /// Why its owner removes the pod, and what becomes of its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<String>,
    /// Every field that differs, those that ask for the highest step first.
    pub(crate) because: Vec<FieldDiff>,
    /// True if the owner wants another revision of the template.
    #[serde(skip)]
    pub(crate) is_outdated: bool,
}

/// A field that differs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DifferenceOutput")]
pub(crate) struct FieldDiff {
    pub(crate) field: String,
    /// At most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The wanted value, in at most 80 characters; absent if there is none, or if it may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The step that this field alone needs.
    pub(crate) step: &'static str,
}

impl PodDiff {
    fn new(pod: String, node: String, wanted: Wanted, is_outdated: bool) -> Self {
        let mut diff = Self {
            pod,
            node,
            step: None,
            kept: None,
            unknown: None,
            removed: None,
            because: Vec::new(),
            is_outdated,
        };
        match wanted {
            Wanted::Removed(why) => diff.removed = Some(why),
            Wanted::Unknown(reason) => diff.unknown = Some(reason.to_string()),
            Wanted::Update(update) => {
                diff.step = Some(update.step.name());
                diff.kept = Some(update.step.keeps());
                let fields = update.because.into_iter();
                diff.because = fields
                    .map(|Difference { field, from, to, step }| FieldDiff {
                        field,
                        from,
                        to,
                        step: step.name(),
                    })
                    .collect();
            }
        }
        diff
    }
}

/// The reason for a pod that is about to be removed. A StatefulSet of a declared cluster has fewer
/// replicas only after its node has left, so the declaration decides there.
fn leaves(cluster: &SearchCluster, set: &Set, pod: &str) -> Option<Wanted> {
    let is_deleting = cluster.metadata.deletion_timestamp.is_some();
    let declared = set.node_set.as_ref().filter(|_| cluster.is_declared() && !is_deleting);
    let Some(name) = declared else {
        let why = format!(
            "StatefulSet {} wants fewer pods: its controller removes this one, and nobody moves its \
             data to other nodes before",
            set.name
        );
        return (!set.wants(ordinal(pod))).then_some(Wanted::Removed(why));
    };
    let declared = cluster.spec.node_sets.iter().find(|one| one.name == *name);
    let count = declared.map(|set| set.count);
    let is_wanted = |ordinal: i64| ordinal < i64::from(count.unwrap_or_default());
    if ordinal(pod).is_none_or(is_wanted) {
        return None;
    }
    let step = UpdateStep::Move;
    let (field, to) = match count {
        Some(count) => (format!("spec.nodeSets[{name}].count"), Some(count.to_string())),
        None => (format!("spec.nodeSets[{name}]"), None),
    };
    let because = vec![Difference { field, from: None, to, step }];
    Some(Wanted::Update(Update { step, because }))
}

/// Adds the step for changed contents of Secrets and ConfigMaps, if it is higher than that of the
/// template. Only the reconciler reads them, and its status names the step and the objects. The status
/// of the template may be older.
fn with_content(mut update: Update, report: Option<&NodeReport>) -> Update {
    let Some((step, because)) = report.and_then(|report| Some((report.step?, &report.because)))
    else {
        return update;
    };
    if !step.is_of_a_restart() || step <= update.step {
        return update;
    }
    let is_of_template =
        |field: &str| ["spec.", "metadata.", "and "].iter().any(|start| field.starts_with(start));
    let mut fields: Vec<String> =
        because.iter().filter(|field| !is_of_template(field)).cloned().collect();
    if because.is_empty() {
        fields.push(THE_CONFIG.to_owned());
    }
    if fields.is_empty() {
        return update;
    }
    let of_content = |field| Difference { field, from: None, to: None, step };
    update.because.splice(0..0, fields.into_iter().map(of_content));
    Update { step, ..update }
}
