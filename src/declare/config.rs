//! The engine's config: one Secret a set, the same for all of its nodes, until nobody needs it.

use std::collections::BTreeMap;
use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stayput_pod_update::Settings;

use crate::bootstrap::VARIABLE;
use crate::cluster::{roles, settings};
use crate::object::{config_secret, metadata, service_name};
use crate::{Cluster, Distribution, Kind, NodeSet, Object, Observed, Version};

/// Variable of the container from which `node.name` is made.
pub(crate) const POD_NAME: &str = "POD_NAME";
/// Variable of the container with the pod's address.
pub(crate) const POD_IP: &str = "POD_IP";

/// Settings that stayput always sets: two nodes of one name, or of two clusters, would not work.
pub(crate) const OURS: [&str; 5] = [
    "cluster.name",
    "node.name",
    "cluster.initial_master_nodes",
    "cluster.initial_cluster_manager_nodes",
    "discovery.zen.minimum_master_nodes",
];

/// A majority of the declared masters.
pub(crate) fn minimum_master_nodes(cluster: &Cluster) -> u32 {
    let masters = cluster.node_sets.iter().filter(|set| roles(set).master);
    masters.map(|set| set.count).sum::<u32>() / 2 + 1
}

pub(crate) fn secret(cluster: &Cluster, set: &NodeSet) -> Object {
    let name = config_secret(&cluster.name, &set.name);
    let file = format!("{}.yml", cluster.engine.distribution.name());
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(cluster, &name, Some(&set.name)),
        "type": "Opaque",
        // Not `stringData`: of that, an apply takes no key away.
        "data": { file: STANDARD.encode(yaml(cluster, set)) },
    });
    Object { kind: Kind::Secret, name, body }
}

/// The config as YAML: one setting a line, each value as JSON. The quotes matter: Elasticsearch 8
/// substitutes variables in the text before it reads that, and refuses a setting without a value.
fn yaml(cluster: &Cluster, set: &NodeSet) -> String {
    let mut all = cluster_settings(cluster);
    let written = settings(set);
    all.extend(defaults(cluster, &written).into_iter().filter(|(key, _)| {
        let below = format!("{key}.");
        !written.keys().any(|name| name == key || name.starts_with(&below))
    }));
    all.extend(set.config.iter().map(|(key, value)| (key.clone(), value.clone())));
    all.iter().fold(String::new(), |mut text, (key, value)| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{key}: {value}");
        text
    })
}

fn cluster_settings(cluster: &Cluster) -> BTreeMap<String, Value> {
    let engine = &cluster.engine;
    let mut settings = BTreeMap::from([
        ("cluster.name".to_owned(), json!(cluster.name)),
        ("node.name".to_owned(), json!(format!("${{{POD_NAME}}}"))),
    ]);
    if engine.has_minimum_master_nodes() {
        let minimum = json!(minimum_master_nodes(cluster));
        settings.insert("discovery.zen.minimum_master_nodes".to_owned(), minimum);
    } else {
        settings.insert(engine.initial_masters().to_owned(), json!(format!("${{{VARIABLE}}}")));
    }
    settings
}

/// Settings that apply unless the set's config has its own value.
fn defaults(cluster: &Cluster, written: &Settings) -> BTreeMap<String, Value> {
    let engine = &cluster.engine;
    let seeds = format!("{}.{}.svc", service_name(&cluster.name), cluster.namespace);
    let mut defaults = BTreeMap::from([
        ("network.host".to_owned(), json!("0.0.0.0")),
        ("network.publish_host".to_owned(), json!(format!("${{{POD_IP}}}"))),
        ("http.port".to_owned(), json!(engine.port)),
        (engine.seed_hosts().to_owned(), json!([seeds])),
    ]);
    // Since 8 it is on by default, and refuses to start without certificates.
    let is_secured = written.keys().any(|name| name.starts_with("xpack.security."));
    if engine.distribution == Distribution::Elasticsearch
        && engine.version >= Version(8, 0, 0)
        && !engine.tls
        && !is_secured
    {
        defaults.insert("xpack.security.enabled".to_owned(), json!(false));
    }
    // Without a limit, a stop waits for clients whose answers may never come (docs/warm.md).
    if engine.waits_for_clients() {
        defaults.insert("http.shutdown_grace_period".to_owned(), json!("5s"));
    }
    defaults
}

/// For how long nobody must have needed a Secret before it is deleted, in milliseconds.
const UNNEEDED_FOR: u64 = 15 * 60 * 1000;

/// A Secret that this SearchCluster owns and that carries its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSecret {
    /// Name of the Secret.
    pub name: String,
    /// uid of the Secret.
    pub uid: String,
    /// The node set in its label.
    pub node_set: String,
    /// True if a pod mounts the Secret.
    pub mounted: bool,
}

/// The Secrets to delete now, and the time since which each is not needed, by uid. `since` is the map
/// that the last call returned.
pub fn garbage<'a>(
    cluster: &Cluster,
    observed: &Observed,
    seen: &'a [SeenSecret],
    since: &BTreeMap<String, u64>,
    now: u64,
) -> (Vec<&'a SeenSecret>, BTreeMap<String, u64>) {
    let is_declared = |name: &str| cluster.node_sets.iter().any(|set| set.name == name);
    let unneeded = seen.iter().filter(|secret| {
        let set = secret.node_set.as_str();
        !secret.mounted && !is_declared(set) && !observed.sets.contains_key(set)
    });
    let (mut due, mut known) = (Vec::new(), BTreeMap::new());
    for secret in unneeded {
        let first = since.get(&secret.uid).copied().unwrap_or(now);
        known.insert(secret.uid.clone(), first);
        if now.saturating_sub(first) >= UNNEEDED_FOR {
            due.push(secret);
        }
    }
    (due, known)
}
