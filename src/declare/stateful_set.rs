//! The StatefulSet of a node set.

use serde_json::{Value, json};

use crate::labels::{labels, metadata};
use crate::pod::template;
use crate::{Cluster, Kind, NodeSet, Object, ObservedSet, config, names};

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
    let name = names::stateful_set(&cluster.name, &set.name);
    let mut metadata = metadata(cluster, &name, Some(&set.name));
    metadata["annotations"] = json!({ DECLARED: declared(cluster, set).to_string() });
    let mut body = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "serviceName": names::service(&cluster.name),
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
        declared["minimumMasterNodes"] = json!(config::minimum_master_nodes(cluster));
    }
    declared
}
