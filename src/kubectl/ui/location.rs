//! Place of a node in the picture: its set, the tier of the set, and its zone. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use stayput_declare::NODE_SET;
use stayput_kube_access::cluster::SearchCluster;

const ZONE: &str = "topology.kubernetes.io/zone";
/// Prefix of ECK's labels, such as `elasticsearch.k8s.elastic.co/node-data_hot: "true"`.
const ROLE_OF_ECK: &str = "elasticsearch.k8s.elastic.co/node-";

/// Place of a node in the picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Location {
    /// Name of the pod's owner, such as a StatefulSet; empty without an owner.
    pub(super) set: String,
    /// Roles of the engine's node, where the spec or the labels tell them.
    pub(super) roles: BTreeSet<String>,
    pub(super) zone: Option<String>,
}

/// The zones of machines, by name.
pub(super) type Zones = BTreeMap<String, String>;

/// The zone in an object's labels.
pub(super) fn zone(labels: Option<&BTreeMap<String, String>>) -> Option<String> {
    labels?.get(ZONE).cloned()
}

pub(super) fn location(cluster: &SearchCluster, pod: &Pod, zones: &Zones) -> Location {
    let labels = pod.metadata.labels.as_ref();
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true));
    let machine = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    Location {
        set: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
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
pub(super) fn tier(roles: &BTreeSet<String>) -> Option<(u8, &'static str)> {
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
