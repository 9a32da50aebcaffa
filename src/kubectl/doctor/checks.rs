//! Derives findings from facts. Each group is a function of all facts; none sends a request.

mod cluster;
mod operators;
mod parts;
mod pods;
mod versions;

use std::collections::BTreeMap;

use crate::doctor::{Facts, Finding, network};

pub(crate) use cluster::named_secrets;

const GROUPS: [fn(&Facts) -> Vec<Finding>; 18] = [
    cluster::check_spec,
    cluster::check_status,
    pods::check_owners,
    operators::check_operators,
    operators::check_labels,
    pods::check_templates,
    pods::check_unwatched,
    pods::check_relabelled,
    cluster::check_credentials,
    cluster::check_certificates,
    parts::check_reconciler,
    parts::check_managers,
    parts::check_engine,
    versions::check_versions,
    versions::check_clock,
    network::check_network,
    cluster::check_disruption,
    parts::check_rights,
];

/// The version of this program.
const OURS: &str = env!("CARGO_PKG_VERSION");

/// How the reconciler gets its objects and rights back: a sentence, then a command a line. Objects of a
/// newer version are not installed again from here: with the older CRD Kubernetes would drop fields of
/// every SearchCluster.
fn reinstall(facts: &Facts) -> String {
    match versions::newer(facts) {
        Some(newer) => versions::upgrade_this_program(&newer),
        None => format!(
            "in the folder of stayput {OURS}, repeat the one of these that it was installed with (another \
             one changes its rights):\n\
             kubectl apply -k deploy/\n\
             kubectl apply -k deploy/namespaced\n\
             kubectl apply -k deploy/all-namespaces\n\
             helm upgrade --namespace stayput --reset-then-reuse-values stayput deploy/helm/stayput-reconciler"
        ),
    }
}

/// All findings, the worst first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let found: Vec<Finding> = GROUPS.iter().flat_map(|group| group(facts)).collect();
    let of_conditions = cluster::conditions(facts, &found);
    gathered(found.into_iter().chain(of_conditions))
}

/// Merges equal findings about several objects, such as all pods of a StatefulSet, into one.
fn gathered(all: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut objects: BTreeMap<Finding, Vec<String>> = BTreeMap::new();
    for finding in all {
        let object = finding.object.clone();
        let same = objects.entry(Finding { object: String::new(), ..finding }).or_default();
        if !same.contains(&object) {
            same.push(object);
        }
    }
    let joined = objects
        .into_iter()
        .map(|(finding, objects)| Finding { object: objects.join(", "), ..finding });
    let mut findings: Vec<Finding> = joined.collect();
    findings.sort();
    findings
}
