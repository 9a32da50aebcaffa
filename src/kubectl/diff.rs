//! `diff`: compares the template from which each pod was made with the one that its owner wants now, and
//! shows the cheapest step between them. Reads StatefulSets and their revisions; changes nothing.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use schemars::JsonSchema;
use serde::Serialize;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::pod::{Containers, Owner, engine_node};
use stayput_kube_access::stateful_set::{NotComparable, Revision, Set, ordinal, update};
use stayput_pod_update::{Abilities, Difference, Update, UpdateStep};
use stayput_restart::{NodeReport, THE_CONFIG};

use crate::options::into_commands;
use crate::selection::SelectionError;
use crate::session::Session;
use crate::{apiserver, selection};

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
    /// For each of these StatefulSets, the change after which it keeps its pods.
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
    pub(crate) because: Vec<Difference>,
    /// True if the owner wants another revision of the template.
    #[serde(skip)]
    pub(crate) is_outdated: bool,
}

impl PodDiff {
    fn new(pod: String, node: String, wanted: Wanted, is_outdated: bool) -> Self {
        let because = Vec::new();
        let (step, kept, unknown, removed) = (None, None, None, None);
        let none = Self { pod, node, step, kept, unknown, removed, because, is_outdated };
        match wanted {
            Wanted::Removed(why) => Self { removed: Some(why), ..none },
            Wanted::Unknown(reason) => Self { unknown: Some(reason.to_string()), ..none },
            Wanted::Update(Update { step, because }) => {
                Self { step: Some(step.name()), kept: Some(step.keeps()), because, ..none }
            }
        }
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

/// All pods of the SearchCluster, each compared with the template that its owner wants.
pub(crate) async fn read(session: &Session, name: Option<&str>) -> Result<Diff, SelectionError> {
    let cluster = selection::cluster(session, name).await?;
    let mut pods = apiserver::pods(&session.client, &cluster).await?;
    pods.sort_by_key(ResourceExt::name_any);
    let abilities = Abilities { resize: session.api().serves_resize().await? };
    let port = cluster.spec.manager.port;
    let label = cluster.spec.pods.node_name_label.as_deref();

    let ledger = cluster.status.as_ref().map(|status| &status.ledger);
    let under_way: BTreeSet<&str> = ledger
        .iter()
        .flat_map(|ledger| ledger.under_way())
        .map(|member| member.node.as_str())
        .collect();

    let mut objects = Objects { session, sets: BTreeMap::new(), revisions: BTreeMap::new() };
    let mut compared = Vec::new();
    for pod in &pods {
        let node = engine_node(pod, label);
        // That of a node under way is of its restart, whatever that was requested for.
        let mut reports = cluster.status.iter().flat_map(|status| &status.report.nodes);
        let report = reports.find(|report| report.name == node);
        let report = report.filter(|_| !under_way.contains(node.as_str()));
        let mut is_outdated = false;
        let wanted = match objects.of_pod(&cluster, pod).await? {
            Ok(PodGoal::Leaves(wanted)) => wanted,
            Ok(PodGoal::Revisions([actual, wanted])) => {
                let containers = Containers::of(pod);
                let update = update([&actual, &wanted], containers.engine(port), abilities);
                is_outdated = update.step > UpdateStep::None;
                Wanted::Update(with_content(update, report))
            }
            Err(reason) => Wanted::Unknown(reason),
        };
        compared.push(PodDiff::new(pod.name_any(), node, wanted, is_outdated));
    }
    let sets = objects.sets.into_values().flatten();
    let rolling: Vec<Set> = sets.filter(|set| set.replaced_from.is_some()).collect();
    let namespace = cluster.namespace().unwrap_or_default();
    let options = session.options_in_shell();
    let on_delete = |set: &Set| into_commands(&set.keep_pods(&namespace), &options);
    Ok(Diff {
        cluster: cluster.name_any(),
        pods: compared,
        on_delete: rolling.iter().map(on_delete).collect(),
        rolling_stateful_sets: rolling.into_iter().map(|set| set.name).collect(),
        namespace,
    })
}

/// The owner's wish for a pod.
enum PodGoal {
    /// The pod is about to be removed.
    Leaves(Wanted),
    /// The revision that the pod was made from, and the wanted one.
    Revisions([Revision; 2]),
}

/// Objects read so far, by name, each read once; `None` for an object that does not exist.
struct Objects<'a> {
    session: &'a Session,
    sets: BTreeMap<String, Option<Set>>,
    revisions: BTreeMap<String, Option<Revision>>,
}

impl Objects<'_> {
    async fn of_pod(
        &mut self,
        cluster: &SearchCluster,
        pod: &Pod,
    ) -> Result<Result<PodGoal, NotComparable>, SelectionError> {
        let Some(owner) = Owner::of(pod) else {
            return Ok(Err(NotComparable::NoStatefulSet));
        };
        let Some(set) = self.set(&owner.name).await?.filter(|set| set.uid == owner.uid) else {
            return Ok(Err(NotComparable::OwnerGone(owner.name)));
        };
        if let Some(leaves) = leaves(cluster, &set, &pod.name_any()) {
            return Ok(Ok(PodGoal::Leaves(leaves)));
        }
        let update = match set.wanted() {
            Ok(update) => update.to_owned(),
            Err(reason) => return Ok(Err(reason)),
        };
        let made_from = owner.revision;
        if made_from.is_empty() {
            return Ok(Err(NotComparable::NoRevision));
        }
        let Some(actual) = self.revision(&made_from).await? else {
            return Ok(Err(NotComparable::RevisionGone(made_from)));
        };
        let Some(wanted) = self.revision(&update).await? else {
            return Ok(Err(NotComparable::RevisionGone(update)));
        };
        Ok(Ok(PodGoal::Revisions([actual, wanted])))
    }

    async fn set(&mut self, name: &str) -> Result<Option<Set>, SelectionError> {
        if !self.sets.contains_key(name) {
            let found = self.session.objects::<StatefulSet>().find(name).await?;
            self.sets.insert(name.to_owned(), found.as_ref().map(Set::of));
        }
        Ok(self.sets.get(name).cloned().flatten())
    }

    async fn revision(&mut self, name: &str) -> Result<Option<Revision>, SelectionError> {
        if !self.revisions.contains_key(name) {
            let found = self.session.objects::<ControllerRevision>().find(name).await?;
            self.revisions.insert(name.to_owned(), found.as_ref().map(Revision::of));
        }
        Ok(self.revisions.get(name).cloned().flatten())
    }
}
