//! The SearchCluster, made from what the pods say.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ListParams;
use kube::core::Selector;
use serde_json::{Value, json};

use super::InitError;
use super::made::Made;
use super::operators::{OPERATORS, Operator};
use super::skeleton::{Pods, Wanted, labels, search_cluster};
use crate::cluster::allows;
use crate::kubectl::apiserver::{ApiError, Asked, Kind, STATEFUL_SETS};
use crate::kubectl::args::InitArgs;
use crate::kubectl::json::InitResult;
use crate::kubectl::options::into_commands;
use stayput_certificates::names::Names;

/// What was found.
struct Found {
    selector: LabelSelector,
    /// The `spec` of a pod, or of a template.
    spec: Value,
    by: By,
}

/// By what it was found.
#[derive(Debug, PartialEq, Eq)]
enum By {
    Selector,
    /// It is of the StatefulSet with the cluster's name.
    StatefulSet,
    Operator(&'static Operator),
}

/// Makes it unless it `is_there`. What to type next.
pub(super) async fn make(
    made: &mut Made<'_>,
    names: &Names,
    args: &InitArgs,
    is_there: bool,
) -> Result<Vec<String>, InitError> {
    let (kind, name) = (Kind::SearchCluster, names.cluster.as_str());
    let found = find(made, args).await?;
    let wanted = wanted(made, args, found.as_ref()).await?;
    if is_there {
        made.note(kind, name, InitResult::Unchanged, "");
    } else {
        let engine = found.as_ref().and_then(|found| stayput_inject::engine(&found.spec));
        let object = match (&found, engine) {
            (Some(found), Some(engine)) => {
                let pods = Pods { selector: found.selector.clone(), reached: engine.reached };
                search_cluster(names, &pods, &wanted)
            }
            (Some(_), None) => {
                Err("its pods have no container of Elasticsearch or OpenSearch: choose \
                                    others with --selector")
            }
            (None, _) => Err("no pods are found: say which with --selector, for example app=logs"),
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
    next(made, names, &wanted, found.as_ref()).await
}

/// What is given counts; else what the operator keeps, as far as it is there.
async fn wanted(
    made: &Made<'_>,
    args: &InitArgs,
    found: Option<&Found>,
) -> Result<Wanted, ApiError> {
    let mut wanted = Wanted {
        engine_http: args.engine_http,
        engine_ca: args.engine_ca.clone(),
        server_name: None,
        credentials: args.credentials.clone(),
        is_cert_managers: args.cert_manager.is_some(),
    };
    let Some(Found { by: By::Operator(operator), .. }) = found else { return Ok(wanted) };
    let there =
        async |name: String| Ok::<_, ApiError>(made.find(Kind::Secret, &name).await?.map(|_| name));
    if wanted.credentials.is_none() {
        wanted.credentials = there(operator.credentials(&args.cluster)).await?;
    }
    if wanted.engine_ca.is_none() && !wanted.engine_http {
        wanted.engine_ca = there(operator.authority(&args.cluster)).await?;
        wanted.server_name = wanted.engine_ca.as_ref().map(|_| operator.server(&args.cluster));
    }
    Ok(wanted)
}

fn found_by(selector: &LabelSelector, object: &Value) -> String {
    let scheme = object["spec"]["engine"]["scheme"].as_str().unwrap_or_default();
    let selector = Selector::try_from(selector.clone());
    let selector = selector.map(|selector| selector.to_string()).unwrap_or_default();
    format!("pods with {selector}, engine by {scheme}")
}

fn by_labels(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

async fn find(made: &Made<'_>, args: &InitArgs) -> Result<Option<Found>, InitError> {
    let asked = Asked::of(made.session);
    if let Some(selector) = &args.selector {
        let labels = labels(selector).ok_or_else(|| InitError::Selector(selector.clone()))?;
        let pod = pod_with(&asked, selector).await?;
        let selector = by_labels(labels);
        return Ok(pod.map(|pod| Found { selector, spec: json!(pod.spec), by: By::Selector }));
    }
    if let Some(set) = asked.find::<StatefulSet>(STATEFUL_SETS, &args.cluster).await?
        && let Some(spec) = set.spec
    {
        let (selector, by) = (spec.selector, By::StatefulSet);
        return Ok(Some(Found { selector, spec: json!(spec.template.spec), by }));
    }
    for operator in &OPERATORS {
        let label = operator.label;
        let pod = pod_with(&asked, &format!("{label}={}", args.cluster)).await?;
        if let Some(pod) = pod {
            let selector = by_labels(BTreeMap::from([(label.to_owned(), args.cluster.clone())]));
            let by = By::Operator(operator);
            return Ok(Some(Found { selector, spec: json!(pod.spec), by }));
        }
    }
    Ok(None)
}

async fn pod_with(asked: &Asked<'_>, labels: &str) -> Result<Option<Pod>, ApiError> {
    Ok(asked.list("pods", &ListParams::default().labels(labels)).await?.into_iter().next())
}

async fn next(
    made: &Made<'_>,
    names: &Names,
    wanted: &Wanted,
    found: Option<&Found>,
) -> Result<Vec<String>, InitError> {
    let (namespace, name) = (&made.session.namespace, &names.cluster);
    let mut next = Vec::new();
    if let Some(credentials) = &wanted.credentials {
        let there = made.find(Kind::Secret, credentials).await?;
        let annotations = there.and_then(|there| there.metadata.annotations).unwrap_or_default();
        let allowed = allows(namespace, credentials, &annotations, name);
        next.extend(allowed.err().map(|refused| refused.command));
    }
    let engine = found.and_then(|found| stayput_inject::engine(&found.spec));
    let has_manager = engine.is_none_or(|engine| engine.has_manager);
    next.push(match found.is_some_and(|found| found.by == By::StatefulSet) && !has_manager {
        true => format!(
            "kubectl --namespace {namespace} get statefulset {name} --output yaml | kubectl stayput \
             inject | kubectl replace --filename -"
        ),
        false => format!("kubectl stayput --namespace {namespace} status {name}"),
    });
    let options = made.session.options_in_shell();
    Ok(next.iter().map(|command| into_commands(command, &options)).collect())
}
