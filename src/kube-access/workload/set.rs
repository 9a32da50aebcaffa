//! Reads a StatefulSet: the pods that it wants, their revision, and how it replaces them.

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use stayput_declare::NODE_SET;

use super::NotComparable;

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
        let mut owners = metadata.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        let is_ours = controller.is_some_and(|owner| owner.api_version.starts_with("stayput.dev/"));
        let labels = metadata.labels.as_ref().filter(|_| is_ours);
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            revision: status.and_then(|status| status.update_revision.clone()),
            replaced_from: (!is_on_delete).then(|| first + i64::from(partition)),
            unseen: metadata.generation.filter(|generation| *generation > seen),
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
        if let Some(operator) = &self.operator {
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

    /// The command after which the set replaces no pod by itself.
    pub fn on_delete_command(&self, namespace: &str) -> String {
        format!(
            "kubectl patch statefulset {} --namespace {namespace} --patch \
             '{{\"spec\":{{\"updateStrategy\":{{\"type\":\"OnDelete\",\"rollingUpdate\":null}}}}}}'",
            self.name
        )
    }
}
