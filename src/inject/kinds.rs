//! The kinds of objects that have engines, and the place of the pods in them.

mod eck;
mod opensearch_cluster;
mod stateful_set;

use serde_json::Value;

use crate::edit::Change;
use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::pod;

/// Changes and findings for one object.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) found: Vec<ObjectIssue>,
    /// A note about the replacement of running pods, for an object that is changed.
    pub(crate) rollout: Option<ObjectIssue>,
}

/// True if the command that starts an object's engine is known; `None` for an object without an engine
/// that can be changed.
pub(crate) fn has_known_command(object: &Value, options: &Options) -> Option<bool> {
    let group = object["apiVersion"].as_str()?.split('/').next()?;
    match (group, object["kind"].as_str()?) {
        ("apps", "StatefulSet") => stateful_set::has_known_command(object, options),
        ("elasticsearch.k8s.elastic.co", "Elasticsearch") => Some(true),
        ("opensearch.opster.io" | "opensearch.org", "OpenSearchCluster") => {
            Some(opensearch_cluster::has_known_command(object))
        }
        _ => None,
    }
}

/// The plan for an object, if it has an engine.
pub(crate) fn plan(object: &Value, options: &Options) -> Option<Plan> {
    let group = object["apiVersion"].as_str()?.split('/').next()?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let cluster = options.cluster.as_deref().unwrap_or(name);
    let mut plan = match (group, object["kind"].as_str()?) {
        ("apps", "StatefulSet") => stateful_set::plan(object, cluster, options)?,
        ("elasticsearch.k8s.elastic.co", "Elasticsearch") => {
            without_warm(eck::plan(object, cluster, options), options)
        }
        ("opensearch.opster.io" | "opensearch.org", "OpenSearchCluster") => {
            without_warm(opensearch_cluster::plan(object, cluster, options), options)
        }
        _ => return None,
    };
    if cluster.is_empty() {
        plan.found.push(ObjectIssue::error(
            "metadata.name",
            "without a name it is not known which Secret has the managers' certificate",
            "Give the object a name, or the cluster: --cluster NAME",
        ));
    }
    Some(plan)
}

/// Adds the error for `--warm`, which does not work for operators: they make their pods themselves.
fn without_warm(mut plan: Plan, options: &Options) -> Plan {
    if options.warm {
        plan.found.push(ObjectIssue::error(
            "spec",
            "an archive of classes can be made in the pods of a StatefulSet only",
            "Make it in the image (stayput warm), and leave out --warm",
        ));
    }
    plan
}

/// True if an operator's object switches TLS on, false if it switches TLS off.
pub(crate) fn has_tls(object: &Value) -> Option<bool> {
    match object["kind"].as_str()? {
        "Elasticsearch" => Some(eck::has_tls(&object["spec"])),
        "OpenSearchCluster" => opensearch_cluster::has_tls(&object["spec"]),
        _ => None,
    }
}

/// Why there is no plan for an object that runs pods.
#[derive(Debug)]
pub(crate) enum Passed {
    /// The object has an engine, but this kind is not changed.
    Kind(ObjectIssue),
    /// This kind is changed, but no container is known as the engine's.
    Container(ObjectIssue),
}

/// Why there is no plan for an object, if that is a surprise.
pub(crate) fn passed(object: &Value, options: &Options) -> Option<Passed> {
    let kind = object["kind"].as_str()?;
    if is_hook(object) {
        return None;
    }
    let (field, spec) = match kind {
        "Pod" => ("spec.containers", &object["spec"]),
        _ => ("spec.template.spec.containers", &object["spec"]["template"]["spec"]),
    };
    let wanted = options.container.as_deref();
    match kind {
        "StatefulSet" => {
            let message = match wanted {
                Some(name) => format!("it has no container {name}"),
                None => {
                    "no container has an image that is known, or the name elasticsearch or opensearch"
                        .to_owned()
                }
            };
            let remedy = "If one is an engine, name it: --container NAME";
            Some(Passed::Container(ObjectIssue::note(field, message, remedy)))
        }
        "Deployment" | "DaemonSet" | "ReplicaSet" | "Pod" => {
            let container = pod::find_container(spec, wanted)?;
            (!pod::has_manager(container)).then(|| {
                Passed::Kind(ObjectIssue::note(
                    field,
                    format!("it has an engine, and a {kind} is not changed"),
                    "Run the engine in a StatefulSet",
                ))
            })
        }
        _ => None,
    }
}

/// True if Helm or Argo CD runs the object once beside the others: a test of a chart often has the
/// engine's image, for curl.
fn is_hook(object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    ["helm.sh/hook", "argocd.argoproj.io/hook"].iter().any(|hook| annotations[hook].is_string())
}
