//! A cluster that is followed: its state at one moment, the next one that follows from it, and the place of
//! each node. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use stayput_declare::NODE_SET;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::pod::controller;
use stayput_restart::Time;

use crate::leader::Reconciler;
use crate::progress::{Line, Reported, State, observe};
use crate::view::ClusterView;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 50;

/// Freshness of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Source {
    #[default]
    Live,
    /// The apiserver stopped delivering the state, for this reason.
    Lost(String),
    Deleted,
}

/// A cluster at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageModel {
    pub(crate) view: ClusterView,
    /// Place of each node in the picture, by name of the pod.
    pub(crate) locations: BTreeMap<String, Location>,
    /// Observed changes, the latest last.
    pub(crate) lines: VecDeque<Line>,
    pub(crate) source: Source,
    /// Time at which this state was current.
    pub(crate) fresh: Time,
    /// Parts of the restart that are in the lines.
    reported: Reported,
}

impl PageModel {
    /// The next model, after a read.
    #[must_use]
    pub(crate) fn read<'a>(
        self,
        cluster: &SearchCluster,
        pods: impl Iterator<Item = &'a Pod> + Clone,
        zones: &Zones,
        now: Time,
    ) -> Self {
        let reconciler = self.view.reconciler;
        let view = ClusterView { reconciler, ..ClusterView::from_objects(cluster, pods.clone()) };
        let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
        let locations = pods.map(|pod| (name(pod), location(cluster, pod, zones))).collect();
        let observation = observe(self.reported, &view, now);
        let reported = match observation.state {
            State::Open => observation.reported,
            State::Ended(_) | State::Lost(_) => Reported::new(None),
        };
        let mut lines = self.lines;
        lines.extend(observation.lines);
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        Self { view, locations, lines, source: Source::Live, fresh: now, reported }
    }

    /// This model with the new state of the reconciler.
    #[must_use]
    pub(crate) fn with_reconciler(self, reconciler: Reconciler) -> Self {
        Self { view: ClusterView { reconciler, ..self.view }, ..self }
    }

    /// The next model, after a failed read.
    #[must_use]
    pub(crate) fn lost(self, why: String) -> Self {
        Self { source: Source::Lost(why), ..self }
    }

    /// The next model, after the SearchCluster was deleted.
    #[must_use]
    pub(crate) fn deleted(self, now: Time) -> Self {
        Self { source: Source::Deleted, fresh: now, ..self }
    }
}

const ZONE: &str = "topology.kubernetes.io/zone";
/// Prefix of ECK's labels, such as `elasticsearch.k8s.elastic.co/node-data_hot: "true"`.
const ROLE_OF_ECK: &str = "elasticsearch.k8s.elastic.co/node-";

/// Place of a node in the picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Location {
    /// Name of the pod's owner, such as a StatefulSet; empty without an owner.
    pub(crate) set: String,
    /// Roles of the engine's node, where the spec or the labels tell them.
    pub(crate) roles: BTreeSet<String>,
    pub(crate) zone: Option<String>,
}

/// The zones of machines, by name.
pub(crate) type Zones = BTreeMap<String, String>;

/// The zone in an object's labels.
pub(crate) fn zone(labels: Option<&BTreeMap<String, String>>) -> Option<String> {
    labels?.get(ZONE).cloned()
}

pub(crate) fn location(cluster: &SearchCluster, pod: &Pod, zones: &Zones) -> Location {
    let labels = pod.metadata.labels.as_ref();
    let machine = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    Location {
        set: controller(pod).map(|owner| owner.name.clone()).unwrap_or_default(),
        roles: roles(cluster, labels),
        zone: zone(labels).or_else(|| zones.get(machine?).cloned()),
    }
}

fn roles(cluster: &SearchCluster, labels: Option<&BTreeMap<String, String>>) -> BTreeSet<String> {
    let of_eck = labels.into_iter().flatten().filter(|(_, value)| *value == "true");
    let of_eck = of_eck.filter_map(|(name, _)| name.strip_prefix(ROLE_OF_ECK));
    let name = labels.and_then(|labels| labels.get(NODE_SET));
    let set = cluster.spec.node_sets.iter().find(|set| Some(&set.name) == name);
    let declared = set.and_then(|set| set.config.get("node.roles")).and_then(Value::as_array);
    let declared = declared.into_iter().flatten().filter_map(Value::as_str);
    of_eck.chain(declared).map(str::to_owned).collect()
}

/// Tier of nodes with these roles, and its position in the picture, if the roles are known.
pub(crate) fn tier(roles: &BTreeSet<String>) -> Option<(u8, &'static str)> {
    let has = |role: &str| roles.contains(role);
    let is_master = has("master") || has("cluster_manager");
    Some(match () {
        () if roles.is_empty() => return None,
        () if has("data_hot") => (1, "hot"),
        () if has("data_warm") => (3, "warm"),
        () if has("data_cold") => (4, "cold"),
        () if has("data_frozen") => (5, "frozen"),
        () if has("data") || has("data_content") => (2, "data"),
        () if is_master => (0, "master"),
        () => (6, "no data"),
    })
}
