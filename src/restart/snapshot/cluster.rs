//! The SearchCluster object in a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Pod;
use crate::{Time, annotation};

/// The SearchCluster, as far as decisions need it, beside its policy and its ledger.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// `namespace/name`, for messages.
    pub name: String,
    /// True if the SearchCluster is being deleted: debts are paid, no restart begins.
    pub deleting: bool,
    /// Our finalizer is on it.
    pub finalizer: bool,
    /// True if the SearchCluster has a status; without one, an existing request is adopted and not
    /// carried out.
    pub has_status: bool,
    /// Our annotations on it.
    pub annotations: BTreeMap<String, String>,
    /// Who applies the phase on it as part of a configuration, for people; absent if a client only wrote
    /// it. Who applies it writes it again whenever it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_applied_by: Option<String>,
    /// `spec.paused`: no new stops.
    pub paused: bool,
    /// When the next of `spec.restart.windows` opens; none while one is open, and without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub closed_until: Option<Time>,
    /// `spec.stopped`: names of nodes to be kept stopped.
    pub stopped: BTreeSet<String>,
    /// Other SearchClusters whose selectors match our pods; no node is stopped meanwhile.
    pub overlaps: Vec<String>,
    /// Uids of pods that are owed something and are there, although `spec.pods.selector` matches no pod.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unselected: BTreeSet<String>,
}

/// Namespace and name of a SearchCluster `<namespace>/<name>`, for commands.
pub(crate) fn namespace_and_name(cluster: &str) -> (&str, &str) {
    cluster.split_once('/').unwrap_or(("default", cluster))
}

impl Cluster {
    /// The gates of a kind that are closed for this restart, by name, with their values. `kind` is the
    /// prefix of their keys.
    pub(crate) fn closed_gates(
        &self,
        kind: &str,
        restart: &str,
    ) -> impl Iterator<Item = (&str, &str)> {
        let gates = self.annotations.iter();
        gates
            .filter_map(move |(key, value)| Some((key.strip_prefix(kind)?, value.as_str())))
            .filter(move |(_, value)| *value != restart)
    }

    /// True if the spec or an annotation requests that the node of this pod is kept stopped.
    pub(crate) fn keeps_stopped(&self, pod: &Pod) -> bool {
        self.stopped.contains(&pod.node) || annotation::keeps_stopped(&pod.annotations)
    }
}
