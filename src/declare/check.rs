//! Refuses errors in a declaration itself, and engines that cannot follow those that are there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stayput_pod_update::Settings;

use crate::cluster::{Roles, roles, settings};
use crate::config::OURS;
use crate::object::{CLUSTER, MAX_STATEFUL_SET, NODE_SET, is_label, stateful_set_name};
use crate::pod::DATA;
use crate::{Cluster, Distribution, Engine, NodeSet, Observed, ObservedSet, Version};

/// An error in one field. Nothing is changed while there is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Refusal {
    /// Path of the field, such as `spec.nodeSets[data].count`.
    pub field: String,
    /// The error, and what to write instead.
    pub problem: String,
}

impl Refusal {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// A refusal of a field of a node set, or of the node set itself.
    pub(crate) fn of_set(set: &str, field: &str, problem: impl Into<String>) -> Self {
        let dot = if field.is_empty() { "" } else { "." };
        Self::new(format!("spec.nodeSets[{set}]{dot}{field}"), problem)
    }
}

/// All errors of the declaration, in the order of the fields.
pub fn check(cluster: &Cluster) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if !is_label(&cluster.name) {
        refusals.push(Refusal::new(
            "metadata.name",
            format!(
                "{:?} cannot be the name of a Service: with spec.nodeSets a name has small letters, \
                 digits and -, and begins with a letter",
                cluster.name
            ),
        ));
    }
    if cluster.engine.warm && cluster.engine.distribution == Distribution::Elasticsearch {
        refusals.push(Refusal::new(
            "spec.engine.warm",
            "is for OpenSearch: JVMs use no archive of classes where Elasticsearch 8 and later patch a module; \
             take it out",
        ));
    }
    let mut names = BTreeSet::new();
    for set in cluster.sorted() {
        if !names.insert(&set.name) {
            refusals.push(Refusal::of_set(&set.name, "name", "is there twice: rename one of them"));
        }
        refusals.extend(check_set(cluster, set));
    }
    refusals.extend(check_claim_names(cluster));
    let has = |role: fn(Roles) -> bool| cluster.node_sets.iter().any(|set| role(roles(set)));
    if !has(|roles| roles.master) {
        refusals.push(Refusal::new(
            "spec.nodeSets",
            "no node can be elected master: give one of them the role master (in OpenSearch \
             cluster_manager) in node.roles",
        ));
    }
    if !has(|roles| roles.data) {
        refusals.push(Refusal::new(
            "spec.nodeSets",
            "no node has data: give one of them the role data in node.roles",
        ));
    }
    refusals.sort();
    refusals
}

fn check_set(cluster: &Cluster, set: &NodeSet) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |field: &str, problem: String| {
        refusals.push(Refusal::of_set(&set.name, field, problem));
    };
    let name = stateful_set_name(&cluster.name, &set.name);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if set.name.is_empty() || !set.name.chars().all(fits) || set.name.ends_with('-') {
        refuse("name", "is no part of a pod's name: write small letters, digits and -".to_owned());
    }
    if name.len() > MAX_STATEFUL_SET {
        refuse(
            "name",
            format!(
                "makes the StatefulSet {name}, whose name has {} characters; it may have {}: \
                 shorten the name of the set or of the SearchCluster",
                name.len(),
                MAX_STATEFUL_SET
            ),
        );
    }
    if set.count == 0 {
        refuse("count", "is 0: write 1 or more".to_owned());
    }
    for setting in settings(set).keys().filter(|setting| OURS.contains(&setting.as_str())) {
        refuse("config", format!("{setting} is written by stayput: take it out"));
    }
    if settings(set).get("discovery.type").is_some_and(|kind| kind == "single-node") {
        let problem = "discovery.type is single-node, and nodes that are declared find each other: take it out";
        refuse("config", problem.to_owned());
    }
    for problem in unreachable(&cluster.engine, &settings(set)) {
        refuse("config", problem);
    }
    for key in set.config.keys() {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if key.is_empty() || !key.chars().all(fits) {
            refuse("config", format!("{key:?} is no name of a setting"));
        }
    }
    if !matches!(set.pod_template, Value::Null | Value::Object(_)) {
        refuse("podTemplate", "is no object: write metadata and spec as in a pod".to_owned());
    }
    for label in [CLUSTER, NODE_SET] {
        if !set.pod_template["metadata"]["labels"][label].is_null() {
            refuse("podTemplate", format!("the label {label} is written by stayput: take it out"));
        }
    }
    let claims = claim_names(set);
    if claims.len() < set.volume_claim_templates.len() {
        refuse(
            "volumeClaimTemplates",
            "each needs a name of its own: write metadata.name".to_owned(),
        );
    }
    let volumes = set.pod_template["spec"]["volumes"].as_array().into_iter().flatten();
    if !claims.contains(DATA) && !volumes.into_iter().any(|volume| volume["name"] == DATA) {
        refuse(
            "volumeClaimTemplates",
            format!(
                "there is none named {DATA} for what the engine stores: add it, or a volume of this \
                 name to podTemplate.spec.volumes"
            ),
        );
    }
    refusals
}

fn claim_names(set: &NodeSet) -> BTreeSet<&str> {
    let names = set.volume_claim_templates.iter();
    names.filter_map(|claim| claim["metadata"]["name"].as_str()).collect()
}

/// Refuses claim templates that lead to one name. The name of a claim is that of its template, of the
/// StatefulSet and of the pod, with a hyphen between them.
fn check_claim_names(cluster: &Cluster) -> Vec<Refusal> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut refusals = Vec::new();
    for set in cluster.sorted() {
        for claim in claim_names(set) {
            let name = format!("{claim}-{}", stateful_set_name(&cluster.name, &set.name));
            if let Some(other) = seen.insert(name.clone(), &set.name)
                && other != set.name
            {
                refusals.push(Refusal::of_set(
                    &set.name,
                    "volumeClaimTemplates",
                    format!(
                        "{claim:?} makes the claims {name}-0…, and so does a template of node set \
                         {other}: rename one of them"
                    ),
                ));
            }
        }
    }
    refusals
}

/// Settings with the addresses at which an engine listens; the first one that is set applies.
const ADDRESSES: [&str; 4] = ["http.bind_host", "http.host", "network.bind_host", "network.host"];
/// The setting with the port at which an engine listens.
const PORT: &str = "http.port";
/// Values that mean every address.
const ALL: [&str; 2] = ["0.0.0.0", "::"];
/// Values that mean loopback.
const LOOPBACK: [&str; 6] =
    ["_local_", "_local:ipv4_", "_local:ipv6_", "localhost", "127.0.0.1", "::1"];

/// Settings that would make the engine unreachable, each with the value to write: its manager asks on loopback, and the
/// reconciler at the pod's address, both at `spec.engine.port`.
fn unreachable(engine: &Engine, settings: &Settings) -> Vec<String> {
    let port = settings.get(PORT).filter(|port| **port != engine.port.to_string());
    let port = port.map(|port| {
        format!(
            "{PORT} is {port}, and the engine is asked at spec.engine.port, {}: take it out, and write \
             spec.engine.port",
            engine.port
        )
    });
    let written = ADDRESSES.into_iter().find_map(|name| Some((name, settings.get(name)?)));
    let address = written.filter(|(_, addresses)| !is_reached(addresses)).map(|(name, addresses)| {
        format!(
            "{name} is {addresses}, and the engine is asked on loopback and at the address of its pod: take \
             it out, or write 0.0.0.0; network.publish_host and transport.host may be others"
        )
    });
    port.into_iter().chain(address).collect()
}

fn is_reached(addresses: &str) -> bool {
    let each = || addresses.split(',').map(str::trim);
    let is_loopback = |address: &str| LOOPBACK.contains(&address);
    each().any(|address| ALL.contains(&address))
        || each().any(is_loopback) && !each().all(is_loopback)
}

/// Refuses engine versions that cannot follow the current one: an engine does not start on data of a newer engine, or
/// of one that is too old. Sources:
/// * Elasticsearch 7: "from 6.8", and "the upgrade path from 6.8 to 7.0 is not supported"
///   (elastic.co/guide/en/elasticsearch/reference/7.16/setup-upgrade.html). 7.0 takes 6.7
///   (github.com/elastic/elasticsearch/pull/46720).
/// * Elasticsearch 8: "you must first upgrade to 7.17" (…/reference/8.18/rolling-upgrades.html).
/// * Elasticsearch 9: 9.0 takes 8.18 and not 8.19, later ones 8.19
///   (github.com/elastic/docs-content/issues/1685, …/pull/2296).
/// * OpenSearch: one major version at a time, and 3 takes 2.19
///   (docs.opensearch.org/latest/migrate-or-upgrade/rolling-upgrade).
pub(crate) fn engine_changes(cluster: &Cluster, observed: &Observed) -> Vec<Refusal> {
    let engine = &cluster.engine;
    let mut sets = observed.sets.values();
    let other =
        sets.find_map(|set| set.distribution().filter(|was| *was != engine.distribution.name()));
    let other = other.map(|was| {
        let problem =
            format!("the nodes run {was}, which cannot become another engine: write {was}");
        Refusal::new("spec.engine.distribution", problem)
    });
    // Between distributions, versions say nothing.
    let refused = other.or_else(|| version_change(engine, observed));
    refused.into_iter().collect()
}

fn version_change(engine: &Engine, observed: &Observed) -> Option<Refusal> {
    let versions = || observed.sets.values().filter_map(ObservedSet::version);
    let (oldest, newest) = (versions().min()?, versions().max()?);
    let wanted = engine.version;
    let first = oldest_before(engine);
    let older = older_than(engine)
        .filter(|(too_new, _)| versions().any(|there| there.0 < wanted.0 && there >= *too_new));
    let name = engine.distribution.name();
    let problem = if newest > wanted {
        format!(
            "downgrade: is {wanted}, and nodes were declared with {newest}. An engine cannot read what \
             a newer one has written: write {newest} or a higher version"
        )
    } else if let Some((_, Version(major, minor, _))) = older {
        format!(
            "is {wanted}, which is older than {name} {newest}, and does not start on what that has \
             written: write {major}.{minor} or a higher version"
        )
    } else if oldest < first {
        let Version(major, minor, _) = first;
        format!(
            "is {wanted}, and nodes were declared with {oldest}. {name} {wanted} starts on what {major}.{minor} \
             or a later one has written: upgrade to that first"
        )
    } else {
        return None;
    };
    Some(Refusal::new("spec.engine.version", problem))
}

/// The oldest version that the engine can follow.
fn oldest_before(engine: &Engine) -> Version {
    use Distribution::{Elasticsearch, OpenSearch};
    match (engine.distribution, engine.version) {
        (Elasticsearch, Version(7, 0, _)) => Version(6, 7, 0),
        (Elasticsearch, Version(7, ..)) => Version(6, 8, 0),
        (Elasticsearch, Version(8, ..)) => Version(7, 17, 0),
        (Elasticsearch, Version(9, 0, _)) => Version(8, 18, 0),
        (Elasticsearch, Version(9, ..)) => Version(8, 19, 0),
        (OpenSearch, Version(3, ..)) => Version(2, 19, 0),
        (Elasticsearch | OpenSearch, Version(major, ..)) => Version(major.saturating_sub(1), 0, 0),
    }
}

/// The oldest release of the major version before that came out after this one, and what can follow it.
fn older_than(engine: &Engine) -> Option<(Version, Version)> {
    match (engine.distribution, engine.version) {
        (Distribution::Elasticsearch, Version(7, 0, _)) => {
            Some((Version(6, 8, 0), Version(7, 1, 0)))
        }
        (Distribution::Elasticsearch, Version(9, 0, _)) => {
            Some((Version(8, 19, 0), Version(9, 1, 0)))
        }
        _ => None,
    }
}
