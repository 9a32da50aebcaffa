//! Which objects have engines, and where in them the pods are.

mod eck;
mod opensearch_cluster;
mod stateful_set;

use serde_json::Value;

use crate::edit::Change;
use crate::finding::Found;
use crate::options::Options;

/// What is to be done with an object.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) found: Vec<Found>,
}

/// The plan for an object; nothing if it has no engine.
pub(crate) fn plan(object: &Value, options: &Options) -> Option<Plan> {
    let group = object["apiVersion"].as_str()?.split('/').next()?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let cluster = options.cluster.as_deref().unwrap_or(name);
    match (group, object["kind"].as_str()?) {
        ("apps", "StatefulSet") => stateful_set::plan(object, cluster, options),
        ("elasticsearch.k8s.elastic.co", "Elasticsearch") => {
            Some(without_warm(eck::plan(object, cluster, options), options))
        }
        ("opensearch.opster.io" | "opensearch.org", "OpenSearchCluster") => {
            Some(without_warm(opensearch_cluster::plan(object, cluster, options), options))
        }
        _ => None,
    }
}

/// Operators make their pods themselves.
fn without_warm(mut plan: Plan, options: &Options) -> Plan {
    if options.warm {
        plan.found.push(Found::error(
            "spec",
            "an archive of classes can be made in the pods of a StatefulSet only",
            "Make it in the image (stayput warm), and leave out --warm",
        ));
    }
    plan
}
