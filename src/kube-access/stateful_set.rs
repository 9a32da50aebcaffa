//! Reads a StatefulSet: the pods that it wants, their revision, and how it replaces them; compares the revision that
//! a pod was made from with that of its StatefulSet.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;
use stayput_declare::NODE_SET;
use stayput_pod_update::{Abilities, Content, Declaration, Update, UpdateStep, compare};
use stayput_restart::OperatorKind;

use crate::pod::controller;

/// Facts about a StatefulSet that decide about its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub name: String,
    pub uid: String,
    pub version: String,
    /// The revision that the set wants, once its controller has seen it.
    pub(crate) revision: Option<String>,
    /// The least ordinal whose pod the set replaces by itself; `None` if it replaces none (`OnDelete`).
    pub replaced_from: Option<i64>,
    /// Generation of the spec, if the set's controller has not seen it yet.
    pub(crate) unseen: Option<i64>,
    /// Kind and name of the set's controller, if that is not a SearchCluster: an operator decides about the
    /// pods.
    pub operator: Option<String>,
    /// True for ECK and the OpenSearch operator: labels go ahead of their pods, which these are content with.
    is_of_engine_operator: bool,
    /// The node set of a declared cluster that the set was made for.
    pub node_set: Option<String>,
    /// True if the set makes a pod only when all of lower ordinals are ready (`OrderedReady`).
    pub is_ordered: bool,
    /// Time that a pod has to be ready to count for that, in milliseconds (`minReadySeconds`).
    pub min_ready: u64,
    /// True if the set is being deleted.
    pub is_deleted: bool,
    /// Labels of the pods, from the template.
    labels: BTreeMap<String, String>,
    first: i64,
    count: i64,
}

impl Set {
    /// Reads the strategy as the controller does: the partition counts from the first ordinal.
    pub fn of(set: &StatefulSet) -> Self {
        let (spec, status) = (set.spec.as_ref(), set.status.as_ref());
        let strategy = spec.and_then(|spec| spec.update_strategy.as_ref());
        let is_on_delete =
            strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete");
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref()?.partition)
            .unwrap_or_default();
        let ordinals = spec.and_then(|spec| spec.ordinals.as_ref());
        let first = ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default().into();
        let seen = status.and_then(|status| status.observed_generation).unwrap_or_default();
        let metadata = &set.metadata;
        let controller = controller(set);
        let is_ours = controller.is_some_and(|owner| owner.api_version.starts_with("stayput.dev/"));
        let labels = metadata.labels.as_ref().filter(|_| is_ours);
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            revision: status.and_then(|status| status.update_revision.clone()),
            replaced_from: (!is_on_delete).then(|| first + i64::from(partition)),
            unseen: metadata.generation.filter(|generation| *generation > seen),
            is_of_engine_operator: controller.is_some_and(is_of_engine),
            operator: controller
                .filter(|_| !is_ours)
                .map(|owner| format!("{} {}", owner.kind, owner.name)),
            node_set: labels.and_then(|labels| labels.get(NODE_SET)).cloned(),
            is_ordered: spec.and_then(|spec| spec.pod_management_policy.as_deref())
                != Some("Parallel"),
            min_ready: spec
                .and_then(|spec| spec.min_ready_seconds)
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or_default()
                .saturating_mul(1000),
            is_deleted: metadata.deletion_timestamp.is_some(),
            labels: spec
                .and_then(|spec| spec.template.metadata.as_ref()?.labels.clone())
                .unwrap_or_default(),
            first,
            count: spec.and_then(|spec| spec.replicas).unwrap_or(1).into(),
        }
    }

    /// True if the set is to have a pod of this ordinal; true for a pod without one, which is not told apart.
    pub fn wants(&self, ordinal: Option<i64>) -> bool {
        ordinal.is_none_or(|ordinal| self.ordinals().contains(&ordinal))
    }

    /// The ordinals that the pods are to have.
    pub const fn ordinals(&self) -> Range<i64> {
        self.first..self.first + self.count
    }

    /// Name of the pod of this ordinal, and the labels that it is to have: those of the template, and those
    /// that its controller adds.
    pub fn pod(&self, ordinal: i64) -> (String, BTreeMap<String, String>) {
        let name = format!("{}-{ordinal}", self.name);
        let mut labels = self.labels.clone();
        labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
        labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
        (name, labels)
    }

    /// The revision that the pods are to have.
    pub fn wanted(&self) -> Result<&str, NotComparable> {
        let wanted = self.revision.as_deref().filter(|_| self.unseen.is_none());
        wanted.ok_or_else(|| NotComparable::NotObserved(self.name.clone()))
    }

    /// Reason why edits of the set's template are not ours to carry out, and what to do; `None` if they are.
    pub fn is_not_ours(&self, namespace: &str) -> Option<String> {
        if let Some(operator) = self.operator.as_ref().filter(|_| !self.is_of_engine_operator) {
            return Some(format!(
                "StatefulSet {} belongs to {operator}, whose operator replaces its pods by itself: \
                 set spec.update.mode of the SearchCluster to off",
                self.name
            ));
        }
        self.replaced_from.map(|_| {
            format!(
                "StatefulSet {} replaces its pods by itself when its template is edited, so that \
                 nothing can be carried out in place; `{}` changes that",
                self.name,
                self.on_delete_command(namespace)
            )
        })
    }

    /// The change after which a set that replaces pods by itself keeps them: in the object that a person may edit.
    pub fn keep_pods(&self, namespace: &str) -> String {
        match &self.operator {
            Some(operator) => format!("set the update strategy OnDelete in {operator}"),
            None => self.on_delete_command(namespace),
        }
    }

    /// The command after which the set replaces no pod by itself.
    pub fn on_delete_command(&self, namespace: &str) -> String {
        format!(
            "kubectl patch statefulset {} --namespace {namespace} --patch \
             '{{\"spec\":{{\"updateStrategy\":{{\"type\":\"OnDelete\",\"rollingUpdate\":null}}}}}}'",
            self.name
        )
    }
}

/// True for an object from which an operator makes a cluster of engines.
fn is_of_engine(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split('/').next();
    let is_it = |kind: &OperatorKind| kind.object() == owner.kind && Some(kind.group()) == group;
    OperatorKind::ALL.iter().any(is_it)
}

/// The number at the end of the name of a StatefulSet's pod.
pub fn ordinal(pod_name: &str) -> Option<i64> {
    pod_name.rsplit_once('-')?.1.parse().ok()
}

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
    let keep = match &set.operator {
        Some(_) => set.keep_pods(namespace),
        None => format!(
            "set the update strategy to OnDelete: `{}`, or its partition above the ordinals of these pods",
            set.on_delete_command(namespace)
        ),
    };
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
         restart in place, {keep}"
    ))
}

/// Reason why a pod cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    #[error("no StatefulSet owns it")]
    NoStatefulSet,
    #[error("its StatefulSet {0} is not there")]
    OwnerGone(String),
    #[error("it has no label controller-revision-hash")]
    NoRevision,
    #[error("the revision {0} that it was made from is no longer kept; see revisionHistoryLimit")]
    RevisionGone(String),
    #[error("StatefulSet {0} was changed, and the StatefulSet controller has not seen it yet")]
    NotObserved(String),
}

/// A pod template as a ControllerRevision keeps it: with fields that we do not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    name: String,
    pub template: Value,
}

impl Revision {
    pub fn of(revision: &ControllerRevision) -> Self {
        let data = revision.data.as_ref().map_or(&Value::Null, |data| &data.0);
        let mut template = data["spec"]["template"].clone();
        // `$patch` says how the revision is to be applied, and is no field of a template.
        template.as_object_mut().map(|template| template.remove("$patch"));
        Self { name: revision.metadata.name.clone().unwrap_or_default(), template }
    }
}

/// The update of a pod from its actual revision to the wanted one. Two templates that mean the same need the
/// label of the revision all the same, and tolerations that are added need another pod: nothing adds them to
/// this one.
pub fn update(
    [actual, wanted]: [&Revision; 2],
    engine_container: &str,
    abilities: Abilities,
) -> Update {
    // The contents of Secrets and ConfigMaps are compared by their checksum.
    let content = Content::default();
    let of = |template| Declaration { template, content: &content };
    let (from, to) = (of(&actual.template), of(&wanted.template));
    let Update { mut because, .. } = compare(to, from, engine_container, abilities);
    for difference in &mut because {
        if difference.field.starts_with("spec.tolerations") {
            difference.step = UpdateStep::Replace;
        }
    }
    because.sort_by(|one, other| other.step.cmp(&one.step).then(one.field.cmp(&other.field)));
    let least = if actual.name == wanted.name { UpdateStep::None } else { UpdateStep::Relabel };
    let step = because.first().map_or(least, |first| first.step);
    Update { step, because }
}
