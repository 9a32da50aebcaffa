//! Errors in a declaration that show without a look at the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::config::OURS;
use crate::labels::{CLUSTER, NODE_SET};
use crate::listening::unreachable;
use crate::pod::DATA;
use crate::roles::{Roles, roles, settings};
use crate::{Cluster, Distribution, NodeSet, Refusal, names};

/// All errors of the declaration, in the order of the fields.
pub fn check(cluster: &Cluster) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if !names::is_label(&cluster.name) {
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
    let name = names::stateful_set(&cluster.name, &set.name);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if set.name.is_empty() || !set.name.chars().all(fits) || set.name.ends_with('-') {
        refuse("name", "is no part of a pod's name: write small letters, digits and -".to_owned());
    }
    if name.len() > names::MAX_STATEFUL_SET {
        refuse(
            "name",
            format!(
                "makes the StatefulSet {name}, whose name has {} characters; it may have {}: \
                 shorten the name of the set or of the SearchCluster",
                name.len(),
                names::MAX_STATEFUL_SET
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
            let name = format!("{claim}-{}", names::stateful_set(&cluster.name, &set.name));
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
