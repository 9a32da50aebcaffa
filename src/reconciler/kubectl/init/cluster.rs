//! The SearchCluster, made from what the pods say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::InitError;
use super::made::Made;
use super::skeleton::{Pods, labels, search_cluster};
use crate::cluster::allows;
use crate::kubectl::apiserver::{Kind, pods_by_labels, stateful_set};
use crate::kubectl::args::InitArgs;
use crate::kubectl::json::InitResult;
use stayput_certificates::names::Names;

/// Labels with the name of their cluster, of the pods that ECK and the OpenSearch operator make.
const OPERATORS: [&str; 2] =
    ["elasticsearch.k8s.elastic.co/cluster-name", "opster.io/opensearch-cluster"];

/// What was found.
struct Found {
    labels: BTreeMap<String, String>,
    /// The `spec` of a pod, or of a template.
    spec: Value,
    /// It is of the StatefulSet with the cluster's name.
    is_set: bool,
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
    if is_there {
        made.note(kind, name, InitResult::Unchanged, "");
    } else {
        let engine = found.as_ref().and_then(|found| stayput_inject::engine(&found.spec));
        let wanted = match (&found, engine) {
            (Some(found), Some(engine)) => {
                let pods = Pods { labels: found.labels.clone(), reached: engine.reached };
                search_cluster(names, &pods, args)
            }
            (Some(_), None) => {
                Err("its pods have no container of Elasticsearch or OpenSearch: choose \
                                    others with --selector")
            }
            (None, _) => Err("no pods are found: say which with --selector, for example app=logs"),
        };
        match wanted {
            Ok(object) => {
                made.create(kind, &object).await?;
                made.note(kind, name, InitResult::Made, &found_by(&object));
            }
            Err(why) => made.note(kind, name, InitResult::Missing, why),
        }
    }
    next(made, names, args, found.as_ref()).await
}

fn found_by(object: &Value) -> String {
    let spec = &object["spec"];
    let labels = spec["pods"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let scheme = spec["engine"]["scheme"].as_str().unwrap_or_default();
    format!("pods with {}, engine by {scheme}", labels.join(","))
}

async fn find(made: &Made<'_>, args: &InitArgs) -> Result<Option<Found>, InitError> {
    let session = made.session;
    if let Some(selector) = &args.selector {
        let labels = labels(selector).ok_or_else(|| InitError::Selector(selector.clone()))?;
        let pods = pods_by_labels(session, selector).await?;
        return Ok(pods.first().map(|pod| Found { labels, spec: json!(pod.spec), is_set: false }));
    }
    if let Some(set) = stateful_set(session, &args.cluster).await?
        && let Some(spec) = set.spec
    {
        let labels = spec.selector.match_labels.unwrap_or_default();
        return Ok(Some(Found { labels, spec: json!(spec.template.spec), is_set: true }));
    }
    for label in OPERATORS {
        let pods = pods_by_labels(session, &format!("{label}={}", args.cluster)).await?;
        if let Some(pod) = pods.first() {
            let labels = BTreeMap::from([(label.to_owned(), args.cluster.clone())]);
            return Ok(Some(Found { labels, spec: json!(pod.spec), is_set: false }));
        }
    }
    Ok(None)
}

async fn next(
    made: &Made<'_>,
    names: &Names,
    args: &InitArgs,
    found: Option<&Found>,
) -> Result<Vec<String>, InitError> {
    let (namespace, name) = (&made.session.namespace, &names.cluster);
    let mut next = Vec::new();
    if let Some(credentials) = &args.credentials {
        let there = made.find(Kind::Secret, credentials).await?;
        let annotations = there.and_then(|there| there.metadata.annotations).unwrap_or_default();
        if allows(credentials, &annotations, name).is_err() {
            next.push(format!(
                "kubectl --namespace {namespace} annotate secret {credentials} stayput.dev/allow={name}"
            ));
        }
    }
    let engine = found.and_then(|found| stayput_inject::engine(&found.spec));
    let has_manager = engine.is_none_or(|engine| engine.has_manager);
    next.push(match found.is_some_and(|found| found.is_set) && !has_manager {
        true => format!(
            "kubectl --namespace {namespace} get statefulset {name} --output yaml | kubectl stayput \
             inject | kubectl replace --filename -"
        ),
        false => format!("kubectl stayput --namespace {namespace} status {name}"),
    });
    Ok(next)
}
