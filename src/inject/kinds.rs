//! The kinds of objects that have engines, and the place of the pods in them.

mod eck;
mod opensearch_cluster;

use serde_json::Value;

use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::pod::{self, Pod};
use crate::yaml::{Change, Path};

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
        ("apps", "StatefulSet") => stateful_set_command_is_known(object, options),
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
        ("apps", "StatefulSet") => stateful_set_plan(object, cluster, options)?,
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

/// True if the operator of an object, an `Elasticsearch` or an `OpenSearchCluster`, gives its engine TLS, false if it does
/// not.
pub fn has_tls(object: &Value) -> Option<bool> {
    match object["kind"].as_str()? {
        "Elasticsearch" => Some(eck::has_tls(&object["spec"])),
        "OpenSearchCluster" => opensearch_cluster::has_tls(object),
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

fn stateful_set_plan(object: &Value, cluster: &str, options: &Options) -> Option<Plan> {
    let at = Path::keys(&["spec", "template", "spec"]);
    let spec = &object["spec"]["template"]["spec"];
    let container = pod::find_container(spec, options.container.as_deref())?;
    if let Some(owner) = OperatedBy::of(&object["metadata"]) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        return Some(Plan { found: vec![owner.refusal(namespace)], ..Plan::default() });
    }
    if pod::has_manager(container) {
        let found = pod::by_hand(format!("{at}.containers"));
        return Some(Plan { found: vec![found], ..Plan::default() });
    }
    let claims = &object["spec"]["volumeClaimTemplates"];
    let (changes, found) = pod::changes(Pod { at: &at, spec, claims, cluster, options }, container);
    Some(Plan { changes, found, rollout: rollout(object) })
}

/// True if the container's command or its image tells how the engine is started.
fn stateful_set_command_is_known(object: &Value, options: &Options) -> Option<bool> {
    let spec = &object["spec"]["template"]["spec"];
    let container = pod::find_container(spec, options.container.as_deref())?;
    let has_own = container["command"].as_array().is_some_and(|words| !words.is_empty());
    Some(has_own || pod::is_official(container))
}

/// A note that another pod template replaces all pods, each as soon as the one before is ready.
fn rollout(object: &Value) -> Option<ObjectIssue> {
    let strategy = &object["spec"]["updateStrategy"]["type"];
    let on_delete = r#"{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}"#;
    let name = object["metadata"]["name"].as_str().unwrap_or("NAME");
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|name| format!("--namespace {name} ")).unwrap_or_default();
    (strategy != "OnDelete").then(|| {
        ObjectIssue::note(
            "spec.updateStrategy.type",
            "with RollingUpdate Kubernetes replaces all running pods, each when the one before is ready, not when \
             the cluster is green",
            format!(
                "To delete them yourself, one by one, run before: `kubectl {namespace}patch statefulset {name} \
                 --patch '{on_delete}'`"
            ),
        )
    })
}

/// Kinds of operators that have pods with an engine, with the API group and kubectl's name. Both groups of the
/// OpenSearch operator are served side by side, and kubectl takes the older one for the short name.
const KINDS: [(&str, &str, &str); 3] = [
    ("elasticsearch.k8s.elastic.co", "Elasticsearch", "elasticsearch"),
    ("opensearch.org", "OpenSearchCluster", "opensearchclusters.opensearch.org"),
    ("opensearch.opster.io", "OpenSearchCluster", "opensearchclusters.opensearch.opster.io"),
];

/// An `Elasticsearch` or an `OpenSearchCluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatedBy {
    /// Kind of the object.
    pub kind: &'static str,
    /// Resource name of the kind for kubectl.
    pub resource: &'static str,
    /// Name of the object.
    pub name: String,
}

impl OperatedBy {
    /// The operator's object that controls an object with this `metadata`.
    pub fn of(metadata: &Value) -> Option<Self> {
        let mut owners = metadata["ownerReferences"].as_array()?.iter();
        let owner = owners.find(|owner| owner["controller"] == true)?;
        let group = owner["apiVersion"].as_str()?.split('/').next()?;
        let mut kinds = KINDS.into_iter();
        let (_, kind, resource) =
            kinds.find(|(its_group, kind, _)| *its_group == group && owner["kind"] == *kind)?;
        Some(Self { kind, resource, name: owner["name"].as_str()?.to_owned() })
    }

    /// Why a StatefulSet of this object is not changed. `namespace` may be empty.
    pub(crate) fn refusal(&self, namespace: &str) -> ObjectIssue {
        let Self { kind, resource, name } = self;
        let namespace =
            if namespace.is_empty() { String::new() } else { format!("--namespace {namespace} ") };
        ObjectIssue::error(
            "metadata.ownerReferences",
            format!(
                "it belongs to {kind} {name}: the operator would delete its pods, or take the change back"
            ),
            format!(
                "Put it into that object: `kubectl {namespace}get {resource} {name} --output yaml | kubectl \
                 stayput inject | kubectl replace --filename -`"
            ),
        )
    }
}
