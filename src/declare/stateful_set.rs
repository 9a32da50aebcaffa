//! The StatefulSet of a node set.

use serde_json::{Value, json};

use crate::labels::{labels, metadata};
use crate::pod::template;
use crate::{Cluster, Kind, NodeSet, Object, config, names};

/// Annotation with what a later declaration is compared with. Kubernetes adds to what it is given,
/// so that the object itself would not be equal.
pub const DECLARED: &str = "stayput.dev/declared";

pub(crate) fn stateful_set(cluster: &Cluster, set: &NodeSet, replicas: u32) -> Object {
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
            "template": template(cluster, set),
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
