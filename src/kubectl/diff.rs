//! `diff`: compares the template from which each pod was made with the one that its owner wants now, and
//! shows the cheapest step between them. Reads StatefulSets and their revisions; changes nothing.

mod read;
#[cfg(test)]
mod tests;

use stayput_pod_update::{Difference, Update, UpdateStep};
use stayput_restart::{NodeReport, THE_CONFIG};

use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::workload::{NotComparable, Set, ordinal};

pub(super) use read::read;

/// One pod, and the result of its comparison.
#[derive(Debug)]
pub(super) struct PodDiff {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) wanted: Wanted,
    /// True if the owner wants another revision of the template.
    pub(super) is_outdated: bool,
}

/// Result of the comparison of a pod.
#[derive(Debug)]
pub(super) enum Wanted {
    /// The step that brings the pod to the wanted template.
    Update(Update),
    /// The owner removes the pod by itself: the reason, and the consequence for its data.
    Removed(String),
    /// The pod cannot be compared.
    Unknown(NotComparable),
}

impl Wanted {
    pub(super) const fn update(&self) -> Option<&Update> {
        match self {
            Self::Update(update) => Some(update),
            Self::Removed(_) | Self::Unknown(_) => None,
        }
    }
}

/// All pods of a SearchCluster, sorted by name.
#[derive(Debug)]
pub(super) struct Diff {
    pub(super) cluster: String,
    pub(super) namespace: String,
    pub(super) pods: Vec<PodDiff>,
    /// StatefulSets that replace their pods by themselves, so that only the step `replace` is left.
    pub(super) rolling: Vec<Set>,
    /// Options of kubectl for the same apiserver, quoted for a shell, with a space in front.
    pub(super) options: String,
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
