//! The SearchCluster, made from facts about the pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::api::ListParams;
use kube::core::Selector;
use serde::Serialize;
use serde_json::{Value, json};
use stayput_certificates::names::SecretNames;
use stayput_inject::{EngineFound, Reachability};
use stayput_kube_access::cluster::{SearchCluster, UpdateMode, allows};
use stayput_kube_access::operator_object::api_resource;
use stayput_kube_access::stateful_set::Set;
use stayput_restart::OperatorKind;

use crate::apiserver::ApiError;
use crate::args::InitArgs;
use crate::init::made::{Kind, Made};
use crate::init::{InitError, InitResult};
use crate::options::{into_commands, into_quoted_commands};
use crate::session::Session;

/// The pods that were found.
struct SelectedPods {
    selector: LabelSelector,
    /// The engine of a pod, or of a template, if it has one.
    engine: Option<EngineFound>,
    by: By,
}

impl SelectedPods {
    fn new(selector: LabelSelector, spec: &impl Serialize, by: By) -> Self {
        Self { selector, engine: stayput_inject::engine(&json!(spec)), by }
    }
}

/// How the pods were found.
#[derive(Debug)]
enum By {
    Selector,
    /// By the StatefulSet with the cluster's name. If it replaces its pods by itself, with the command
    /// that changes this.
    StatefulSet(Option<String>),
    Operator(&'static Operator),
}

/// Commands to type next, and notes to read before.
pub(crate) struct Next {
    pub(crate) notes: Vec<String>,
    pub(crate) commands: Vec<String>,
}

/// Creates the SearchCluster unless it is `there`.
pub(crate) async fn make_cluster(
    made: &mut Made<'_>,
    names: &SecretNames,
    args: &InitArgs,
    there: Option<&SearchCluster>,
) -> Result<Next, InitError> {
    let (kind, name) = (Kind::SearchCluster, names.cluster.as_str());
    let found = find(made, args).await?;
    let wanted = wanted(made, args, found.as_ref()).await?;
    if there.is_some() {
        made.note(kind, name, InitResult::Unchanged, "");
    } else {
        let object = match &found {
            Some(SelectedPods { selector, engine: Some(engine), .. }) => {
                search_cluster(names, selector, engine.reached, &wanted)
            }
            Some(SelectedPods { engine: None, .. }) => Err(
                "its pods have no container of Elasticsearch or OpenSearch: choose others with \
                     --selector",
            ),
            None => Err("no pods are found: say which with --selector, for example app=logs"),
        };
        match object {
            Ok(object) => {
                made.create(kind, &object).await?;
                let selector =
                    found.as_ref().map(|found| found.selector.clone()).unwrap_or_default();
                made.note(kind, name, InitResult::Made, &found_by(&selector, &object));
            }
            Err(why) => made.note(kind, name, InitResult::Missing, why),
        }
    }
    let mut next = next(made, names, &wanted, found.as_ref()).await?;
    let updates = there.is_some_and(|there| there.spec.update.mode == UpdateMode::InPlace);
    if let Some(SelectedPods { by: By::Operator(operator), .. }) = found
        && !updates
    {
        let note = operator.in_place(&made.session.namespace, name);
        next.notes.push(into_quoted_commands(&note, &made.session.options_in_shell()));
    }
    Ok(next)
}

/// Settings of the SearchCluster: those of the command line, or else of the operator's objects, as far
/// as they exist.
async fn wanted(
    made: &Made<'_>,
    args: &InitArgs,
    found: Option<&SelectedPods>,
) -> Result<Wanted, ApiError> {
    let mut wanted = Wanted {
        engine_http: args.engine_http,
        engine_ca: args.engine_ca.clone(),
        server_name: None,
        credentials: args.credentials.clone(),
        is_cert_managers: args.cert_manager.is_some(),
    };
    let Some(SelectedPods { by: By::Operator(operator), engine, .. }) = found else {
        return Ok(wanted);
    };
    let named = |suffix: &str| format!("{}{suffix}", args.cluster);
    let there = async |suffix: &str| {
        let name = named(suffix);
        Ok::<_, ApiError>(made.find(Kind::Secret, &name).await?.map(|_| name))
    };
    let has_tls = engine.and_then(|engine| engine.reached.has_tls);
    wanted.engine_http |= wanted.engine_ca.is_none() && has_tls == Some(false);
    // The operators make a password in any case, and over http everybody could read it.
    if wanted.credentials.is_none() && !wanted.engine_http {
        wanted.credentials = there(operator.credentials).await?;
    }
    if wanted.engine_ca.is_none() && !wanted.engine_http {
        wanted.engine_ca = there(operator.authority).await?;
        wanted.server_name = wanted.engine_ca.as_ref().map(|_| named(operator.server));
    }
    Ok(wanted)
}

fn found_by(selector: &LabelSelector, object: &Value) -> String {
    let engine = &object["spec"]["engine"];
    let scheme = engine["scheme"].as_str().unwrap_or_default();
    let selector = in_words(selector);
    let credentials = match (scheme, engine["credentialsSecret"].is_string()) {
        ("http", true) => ", with credentials that can be read on the network",
        ("http", false) => ", without credentials",
        _ => "",
    };
    format!("pods with {selector}, engine by {scheme}{credentials}")
}

/// As kubectl reads it.
fn in_words(selector: &LabelSelector) -> String {
    Selector::try_from(selector.clone()).map(|selector| selector.to_string()).unwrap_or_default()
}

fn by_labels(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

async fn find(made: &Made<'_>, args: &InitArgs) -> Result<Option<SelectedPods>, InitError> {
    let session = made.session;
    if let Some(selector) = &args.selector {
        let labels = labels(selector).ok_or_else(|| InitError::Selector(selector.clone()))?;
        let pod = pod_with(session, selector).await?;
        return Ok(pod.map(|pod| SelectedPods::new(by_labels(labels), &pod.spec, By::Selector)));
    }
    if let Some(set) = session.objects::<StatefulSet>().find(&args.cluster).await?
        && let Some(spec) = &set.spec
    {
        let selector = spec.selector.clone();
        let set = Set::of(&set);
        let on_delete = set.replaced_from.map(|_| set.on_delete_command(&session.namespace));
        return Ok(Some(SelectedPods::new(
            selector,
            &spec.template.spec,
            By::StatefulSet(on_delete),
        )));
    }
    for operator in &OPERATORS {
        let selector = operator.selector(&args.cluster);
        if let Some(pod) = pod_with(session, &in_words(&selector)).await? {
            let mut found = SelectedPods::new(selector, &pod.spec, By::Operator(operator));
            if let Some(engine) = &mut found.engine
                && engine.reached.has_tls.is_none()
            {
                engine.reached.has_tls = has_tls(session, operator, &args.cluster).await?;
            }
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The TLS setting of the operator's object, if we may read it.
async fn has_tls(
    session: &Session,
    operator: &Operator,
    name: &str,
) -> Result<Option<bool>, ApiError> {
    let objects = session.api().dynamic(&api_resource(operator.kind), &session.namespace);
    match objects.find(name).await {
        Ok(object) => Ok(object.and_then(|object| stayput_inject::has_tls(&json!(object)))),
        Err(error) if error.is_permanent() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn pod_with(session: &Session, labels: &str) -> Result<Option<Pod>, ApiError> {
    let params = ListParams::default().labels(labels);
    Ok(session.objects().list(&params).await?.items.into_iter().next())
}

async fn next(
    made: &Made<'_>,
    names: &SecretNames,
    wanted: &Wanted,
    found: Option<&SelectedPods>,
) -> Result<Next, InitError> {
    let (namespace, name) = (&made.session.namespace, &names.cluster);
    let (mut notes, mut commands) = (Vec::new(), Vec::new());
    if let Some(credentials) = &wanted.credentials {
        let there = made.find(Kind::Secret, credentials).await?;
        let annotations = there.and_then(|there| there.metadata.annotations).unwrap_or_default();
        let allowed = allows(namespace, credentials, &annotations, name);
        commands.extend(allowed.err().map(|refused| refused.command));
    }
    let without_manager = found
        .filter(|found| found.engine.is_some_and(|engine| !engine.has_manager))
        .map(|found| &found.by);
    let injected = match without_manager {
        Some(By::StatefulSet(on_delete)) => {
            notes.extend(on_delete.as_ref().map(|on_delete| {
                format!(
                    "StatefulSet {name} has RollingUpdate: with the next command Kubernetes replaces all of its pods, \
                     each when the one before is ready, not when the cluster is green. To delete them one by one, run \
                     before: `{on_delete}`"
                )
            }));
            Some("statefulset")
        }
        Some(By::Operator(operator)) => Some(operator.resource),
        Some(By::Selector) | None => None,
    };
    commands.push(match injected {
        Some(resource) => format!(
            "kubectl --namespace {namespace} get {resource} {name} --output yaml | kubectl stayput \
             inject | kubectl replace --filename -"
        ),
        None => format!("kubectl stayput --namespace {namespace} status {name}"),
    });
    let options = made.session.options_in_shell();
    Ok(Next {
        notes: notes.iter().map(|note| into_quoted_commands(note, &options)).collect(),
        commands: commands.iter().map(|command| into_commands(command, &options)).collect(),
    })
}

/// One operator, in one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operator {
    kind: OperatorKind,
    /// Resource name of the operator's objects in RBAC rules and for kubectl.
    resource: &'static str,
    /// The Secret with the credentials of the user that may do everything, behind the name of the cluster.
    credentials: &'static str,
    /// The Secret with the CA of the engine's certificates, behind the name of the cluster.
    authority: &'static str,
    /// The name in the engine's certificates, behind the name of the cluster.
    server: &'static str,
    /// A label that only pods of nodes have, if the operator makes others for the same cluster.
    of_nodes: Option<&'static str>,
}

const OPENSEARCH: Operator = Operator {
    kind: OperatorKind::OpenSearch,
    resource: "opensearchclusters.opensearch.org",
    credentials: "-admin-password",
    authority: "-ca",
    server: "",
    // The pod with which a new cluster forms has no manager, and goes.
    of_nodes: Some("opensearch.org/opensearch-nodepool"),
};

const OPERATORS: [Operator; 3] = [
    Operator {
        kind: OperatorKind::Eck,
        resource: "elasticsearches.elasticsearch.k8s.elastic.co",
        credentials: "-es-elastic-user",
        authority: "-es-http-certs-public",
        server: "-es-http",
        of_nodes: None,
    },
    OPENSEARCH,
    Operator {
        kind: OperatorKind::Opster,
        resource: "opensearchclusters.opensearch.opster.io",
        of_nodes: Some("opster.io/opensearch-nodepool"),
        ..OPENSEARCH
    },
];

impl Operator {
    /// The pods of the nodes of this cluster.
    fn selector(&self, cluster: &str) -> LabelSelector {
        let of_cluster = BTreeMap::from([(self.kind.label().to_owned(), cluster.to_owned())]);
        let of_nodes = self.of_nodes.map(|label| LabelSelectorRequirement {
            key: label.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        });
        LabelSelector {
            match_labels: Some(of_cluster),
            match_expressions: of_nodes.map(|of_nodes| vec![of_nodes]),
        }
    }

    /// The commands, for once, after which edits of the operator's object are carried out in place. ECK deletes no pod
    /// with this budget, so it has to have made those with the manager before.
    fn in_place(&self, namespace: &str, name: &str) -> String {
        let Self { kind, resource, .. } = *self;
        let patch = |resource: &str, spec: Value| {
            let spec = json!({ "spec": spec });
            format!(
                "`kubectl --namespace {namespace} patch {resource} {name} --type merge --patch '{spec}'`"
            )
        };
        let budget = json!({ "updateStrategy": { "changeBudget": { "maxUnavailable": 0 } } });
        let first = (kind == OperatorKind::Eck).then(|| patch(resource, budget) + " and ");
        let mode = patch("searchcluster", json!({ "update": { "mode": "inPlace" } }));
        format!(
            "to have edits of {} {name} carried out in the same pods, once all of them have the manager: {}{mode}",
            kind.object(),
            first.unwrap_or_default()
        )
    }
}

/// Settings of the engine in the SearchCluster, and the issuer of the managers' certificate: from the
/// command line, or found.
struct Wanted {
    engine_http: bool,
    engine_ca: Option<String>,
    server_name: Option<String>,
    credentials: Option<String>,
    is_cert_managers: bool,
}

/// The SearchCluster, or the setting that is missing and how to give it. The reconciler itself finds the
/// config's sources in the pods.
fn search_cluster(
    names: &SecretNames,
    selector: &LabelSelector,
    reached: Reachability,
    wanted: &Wanted,
) -> Result<Value, &'static str> {
    let mut engine = match (&wanted.engine_ca, wanted.engine_http, reached.has_tls) {
        (Some(ca), _, _) => json!({ "scheme": "https", "caSecret": ca }),
        (None, true, _) | (None, false, Some(false)) => json!({ "scheme": "http" }),
        (None, false, Some(true)) => {
            return Err(
                "the engine has TLS: run it again with --engine-ca SECRET, the Secret with \
                        the CA of its certificates as ca.crt",
            );
        }
        (None, false, None) => {
            return Err("it is unknown whether the engine has TLS: run it again with \
                        --engine-http, or with --engine-ca SECRET, the Secret with the CA of its \
                        certificates as ca.crt");
        }
    };
    if reached.port != 9200 {
        engine["port"] = json!(reached.port);
    }
    if let Some(name) = &wanted.server_name {
        engine["serverName"] = json!(name);
    }
    if let Some(credentials) = &wanted.credentials {
        engine["credentialsSecret"] = json!(credentials);
        // Over http they were named: those of an operator are left out.
        if engine["scheme"] == "http" {
            engine["allowPlainCredentials"] = json!(true);
        }
    }
    // cert-manager writes the CA beside the certificate.
    let ca = if wanted.is_cert_managers { &names.serving } else { &names.trusted };
    Ok(json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": { "name": names.cluster },
        "spec": {
            "pods": { "selector": selector },
            "engine": engine,
            "manager": { "caSecret": ca, "auth": { "serviceAccountToken": {} } },
        },
    }))
}

/// Parses labels such as `app=logs,role=data`.
fn labels(text: &str) -> Option<BTreeMap<String, String>> {
    let label = |label: &str| {
        let (key, value) = label.split_once('=')?;
        let (key, value) = (key.trim(), value.trim_start_matches('=').trim());
        (!key.is_empty() && !key.ends_with('!')).then(|| (key.to_owned(), value.to_owned()))
    };
    text.split(',').map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names stand in the document, for a cluster of the name `logs`.
    #[test] // proves OPERATE-20
    fn names_are_those_in_the_document() {
        let document = include_str!("../../../docs/operators.md");
        for operator in OPERATORS {
            for name in [
                format!("`{}: logs`", operator.kind.label()),
                format!("`logs{}`", operator.credentials),
                format!("`logs{}`", operator.authority),
                format!("`logs{}`", operator.server),
            ] {
                assert!(document.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn labels_are_read_as_kubectl_reads_them() {
        let read = |text: &str| labels(text).map(|labels| json!(labels));
        assert_eq!(read("app=logs, role==data"), Some(json!({"app": "logs", "role": "data"})));
        for wrong in ["app", "app!=logs", "=logs", "", "app=logs,"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
