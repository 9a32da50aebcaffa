//! The objects of a declared cluster: their names and labels, the headless Service, the StatefulSet of a node set.

use serde_json::{Map, Value, json};

use crate::config::minimum_master_nodes;
use crate::pod::template;
use crate::{Cluster, NodeSet, ObservedSet};

/// Kind of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Secret with the config of a node set.
    Secret,
    /// ConfigMap with the names of the first masters.
    ConfigMap,
    /// Headless Service, by which the nodes find each other.
    Service,
    /// StatefulSet of a node set.
    StatefulSet,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Service => "Service",
            Self::StatefulSet => "StatefulSet",
        })
    }
}

/// An object as it is applied: exactly the fields that belong to stayput.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// Name of the object.
    pub name: String,
    /// The whole object.
    pub body: Value,
}

/// Label with the name of the SearchCluster.
pub const CLUSTER: &str = "stayput.dev/cluster";
/// Label with the name of the node set.
pub const NODE_SET: &str = "stayput.dev/node-set";

/// Labels of an object, and of pods. `set` is `None` for objects of the whole cluster.
pub(crate) fn labels(cluster: &Cluster, set: Option<&str>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert(CLUSTER.into(), cluster.name.clone().into());
    if let Some(set) = set {
        labels.insert(NODE_SET.into(), set.into());
    }
    labels
}

/// The metadata of an object.
pub(crate) fn metadata(cluster: &Cluster, name: &str, set: Option<&str>) -> Value {
    json!({
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels(cluster, set),
        "ownerReferences": [{
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "name": cluster.name,
            "uid": cluster.uid,
            "controller": true,
            "blockOwnerDeletion": false,
        }],
    })
}

/// Name of a set's StatefulSet; its pods, and with them the nodes, add `-0`, `-1`…
pub(crate) fn stateful_set_name(cluster: &str, set: &str) -> String {
    format!("{cluster}-{set}")
}

/// Name of the Secret with a set's config.
pub(crate) fn config_secret(cluster: &str, set: &str) -> String {
    format!("{cluster}-{set}-config")
}

/// Name of the ConfigMap with the names of the first masters.
pub fn bootstrap(cluster: &str) -> String {
    format!("{cluster}-bootstrap")
}

/// Name of the headless Service.
pub(crate) fn service_name(cluster: &str) -> String {
    format!("{cluster}-nodes")
}

/// The longest name of a StatefulSet: with the hash of a revision, which becomes a label of its
/// pods, it may have 63 characters.
pub const MAX_STATEFUL_SET: usize = 52;

/// True if Kubernetes accepts the text as the name of a Service.
pub(crate) fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// The headless Service: nodes find each other by it before they are ready.
pub(crate) fn service(cluster: &Cluster) -> Object {
    let name = service_name(&cluster.name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &name, None),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(cluster, None),
            "ports": [
                { "name": "http", "port": cluster.engine.port },
                { "name": "transport", "port": 9300 },
            ],
        },
    });
    Object { kind: Kind::Service, name, body }
}

/// Annotation with the applied declaration, which a later one is compared with. Kubernetes adds fields
/// to the object, so the object itself would not be equal.
pub const DECLARED: &str = "stayput.dev/declared";

/// The StatefulSet of a node set. `there` is the existing one.
pub(crate) fn stateful_set(
    cluster: &Cluster,
    set: &NodeSet,
    replicas: u32,
    there: Option<&ObservedSet>,
) -> Object {
    let name = stateful_set_name(&cluster.name, &set.name);
    let mut metadata = metadata(cluster, &name, Some(&set.name));
    metadata["annotations"] = json!({ DECLARED: declared(cluster, set).to_string() });
    let mut body = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "serviceName": service_name(&cluster.name),
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "updateStrategy": { "type": "OnDelete" },
            "selector": { "matchLabels": labels(cluster, Some(&set.name)) },
            "template": template(cluster, set, manager_image(cluster, there)),
        },
    });
    if !set.volume_claim_templates.is_empty() {
        body["spec"]["volumeClaimTemplates"] = json!(set.volume_claim_templates);
    }
    if let Some(retention) = &set.claim_retention {
        body["spec"]["persistentVolumeClaimRetentionPolicy"] = retention.clone();
    }
    Object { kind: Kind::StatefulSet, name, body }
}

/// The manager's image for a set: its current one, unless another one is named. Another image takes
/// another pod for each node, and a newer reconciler is no reason for that.
fn manager_image<'a>(cluster: &'a Cluster, there: Option<&'a ObservedSet>) -> &'a str {
    let kept = there.and_then(|set| set.manager_image.as_ref());
    cluster.manager.image.as_ref().or(kept).unwrap_or(&cluster.manager.image_of_new_sets)
}

fn declared(cluster: &Cluster, set: &NodeSet) -> Value {
    let engine = &cluster.engine;
    let mut declared = json!({
        "distribution": engine.distribution.name(),
        "version": engine.version.to_string(),
        "volumeClaimTemplates": set.volume_claim_templates,
    });
    if engine.has_minimum_master_nodes() {
        declared["minimumMasterNodes"] = json!(minimum_master_nodes(cluster));
    }
    declared
}
