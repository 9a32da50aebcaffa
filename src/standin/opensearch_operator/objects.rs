//! The objects that the operator reads and makes.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Label of all that belongs to an `OpenSearchCluster`: its name.
pub const CLUSTER_LABEL: &str = "opensearch.org/opensearch-cluster";
/// Label of all that belongs to a node pool: its `component`.
pub const POOL_LABEL: &str = "opensearch.org/opensearch-nodepool";
/// Annotation of the template: the checksum of the config.
const CONFIG: &str = "opensearch.org/config";
/// Annotation of the StatefulSet: a digest of the template that was written last. The operator keeps all of it here.
pub(super) const APPLIED: &str = "opensearch.org/last-applied";
/// Name of the volume with the config, and of its file.
const VOLUME: &str = "config";
pub(super) const FILE: &str = "opensearch.yml";

/// The labels of a pool, which its StatefulSet selects pods by.
pub fn labels(cluster: &str, component: &str) -> Value {
    json!({ CLUSTER_LABEL: cluster, POOL_LABEL: component })
}

/// The definition of `OpenSearchCluster`, without a schema.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "opensearchclusters.opensearch.org" },
        "spec": {
            "group": "opensearch.org",
            "scope": "Namespaced",
            "names": {
                "kind": "OpenSearchCluster",
                "listKind": "OpenSearchClusterList",
                "plural": "opensearchclusters",
                "singular": "opensearchcluster",
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// ConfigMap and StatefulSet as the operator has them for the first pool of an `OpenSearchCluster`, which owns them.
/// The set has the name of the `OpenSearchCluster`.
pub fn first_objects(cluster: &Value, base: &Value, config_path: &str) -> [Value; 2] {
    let pool = &cluster["spec"]["nodePools"][0];
    let declared = Declared::new(cluster, pool, base, config_path);
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let labels = labels(name, pool["component"].as_str().unwrap_or_default());
    let owner = json!([{
        "apiVersion": cluster["apiVersion"],
        "kind": cluster["kind"],
        "name": name,
        "uid": cluster["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{name}-config"),
            "namespace": cluster["metadata"]["namespace"],
            "ownerReferences": owner,
        },
        "data": { FILE: declared.config },
    });
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": name,
            "namespace": cluster["metadata"]["namespace"],
            "labels": labels,
            "annotations": { APPLIED: declared.applied },
            "ownerReferences": owner,
        },
        "spec": {
            "serviceName": name,
            "replicas": pool["replicas"],
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": { "type": "OnDelete" },
            "selector": { "matchLabels": labels },
            "template": declared.template,
        },
    });
    [map, set]
}

/// Adds what the operator writes when it creates a StatefulSet: set and template share their annotations then. The next
/// look takes it out of the template.
pub fn just_created(set: &mut Value) {
    let applied = set["metadata"]["annotations"][APPLIED].clone();
    set["spec"]["template"]["metadata"]["annotations"][APPLIED] = applied;
}

/// Wishes of an `OpenSearchCluster` for one of its pools.
pub(super) struct Declared {
    pub(super) config: String,
    pub(super) template: Value,
    /// Digest of the template.
    pub(super) applied: String,
}

impl Declared {
    /// `base` is the template without anything that is made from the `OpenSearchCluster`; `path` is where the engine
    /// reads its config.
    pub(super) fn new(cluster: &Value, pool: &Value, base: &Value, path: &str) -> Self {
        let config = config(&cluster["spec"]["general"]["additionalConfig"]);
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let mut template = base.clone();
        let metadata = &mut template["metadata"];
        extend(
            &mut metadata["labels"],
            &labels(name, pool["component"].as_str().unwrap_or_default()),
        );
        extend(&mut metadata["labels"], &pool["labels"]);
        extend(&mut metadata["annotations"], &json!({ CONFIG: digest(&config) }));
        extend(&mut metadata["annotations"], &pool["annotations"]);
        let container = &mut template["spec"]["containers"][0];
        let image = &cluster["spec"]["general"]["image"];
        if !image.is_null() {
            container["image"] = image.clone();
        }
        for variable in pool["env"].as_array().into_iter().flatten() {
            push(&mut container["env"], variable.clone());
        }
        let mount = json!({ "name": VOLUME, "mountPath": path, "subPath": FILE });
        push(&mut container["volumeMounts"], mount);
        let source = json!({ "name": VOLUME, "configMap": { "name": format!("{name}-config") } });
        push(&mut template["spec"]["volumes"], source);
        let applied = digest(&template.to_string());
        Self { config, template, applied }
    }
}

/// The engine's config, from `additionalConfig`.
fn config(settings: &Value) -> String {
    let settings = settings.as_object().into_iter().flatten();
    let line = |(key, value): (&String, &Value)| {
        format!("{key}: {}\n", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    settings.map(line).collect()
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn extend(map: &mut Value, more: &Value) {
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        map[key] = value.clone();
    }
}

fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list").push(item);
}
