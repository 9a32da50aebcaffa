//! A StatefulSet: which pods it wants, of which revision, and how it replaces them.

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use stayput_declare::NODE_SET;

use super::NotComparable;

/// What of a StatefulSet decides about its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The revision that it wants; none before its controller has first seen it.
    pub(crate) revision: Option<String>,
    /// The least ordinal whose pod it replaces by itself; none if it replaces none (`OnDelete`).
    pub(crate) replaced_from: Option<i64>,
    /// The generation of its spec, if its controller has not seen that yet.
    pub(crate) unseen: Option<i64>,
    /// What it belongs to, if that is not a SearchCluster: an operator decides about its pods.
    pub(crate) operator: Option<String>,
    /// The node set of a declared cluster that it was made for.
    pub(crate) node_set: Option<String>,
    /// It makes a pod only when all of lower ordinals are ready (`OrderedReady`).
    pub(crate) is_ordered: bool,
    /// How long a pod has to be ready for that, in milliseconds.
    pub(crate) min_ready: u64,
    /// It is being deleted.
    pub(crate) is_deleted: bool,
    /// Of its pods.
    labels: BTreeMap<String, String>,
    first: i64,
    count: i64,
}

impl Set {
    /// Reads the strategy as the controller does: the partition counts from the first ordinal.
    pub(crate) fn of(set: &StatefulSet) -> Self {
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

    /// Whether it is to have a pod of this number; one without a number is not told apart.
    pub(crate) fn wants(&self, ordinal: Option<i64>) -> bool {
        ordinal.is_none_or(|ordinal| self.ordinals().contains(&ordinal))
    }

    /// The numbers that its pods are to have.
    pub(crate) const fn ordinals(&self) -> Range<i64> {
        self.first..self.first + self.count
    }

    /// The name of its pod of this number, and the labels that this is to have: those of the template,
    /// and those that its controller adds.
    pub(crate) fn pod(&self, ordinal: i64) -> (String, BTreeMap<String, String>) {
        let name = format!("{}-{ordinal}", self.name);
        let mut labels = self.labels.clone();
        labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
        labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
        (name, labels)
    }

    /// The revision that its pods are to have.
    pub(crate) fn wanted(&self) -> Result<&str, NotComparable> {
        let wanted = self.revision.as_deref().filter(|_| self.unseen.is_none());
        wanted.ok_or_else(|| NotComparable::NotObserved(self.name.clone()))
    }

    /// Why edits of its template are not ours to carry out, and what to do; none if they are.
    pub(crate) fn is_not_ours(&self, namespace: &str) -> Option<String> {
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

    /// The command after which it replaces no pod by itself.
    pub(crate) fn on_delete_command(&self, namespace: &str) -> String {
        format!(
            "kubectl patch statefulset {} --namespace {namespace} --patch \
             '{{\"spec\":{{\"updateStrategy\":{{\"type\":\"OnDelete\",\"rollingUpdate\":null}}}}}}'",
            self.name
        )
    }
}
