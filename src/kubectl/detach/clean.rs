//! The steps of `detach`, for a person to confirm, and the removal of stayput's annotations from pods and Secrets.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use kube::core::SelectorExt;
use serde_json::{Value, json};
use stayput_kube_access::cluster::{ALLOW, SearchCluster, allow_command, others};
use stayput_restart::{REVISION_LABEL, annotation};

use crate::apiserver::{self, ApiError};
use crate::options::into_commands;
use crate::session::Session;
use crate::view::ClusterView;

/// One sentence for each step; `ends` is true if restarts are ended.
pub(crate) fn steps(
    view: &ClusterView,
    cluster: &SearchCluster,
    pods: &[Pod],
    ends: bool,
) -> Vec<String> {
    let under_way = view.restart().map(|restart| restart.request.id.clone());
    let queued = view.queued().map(|request| request.id.clone());
    let requested = view.requested().and_then(Result::ok).map(|request| request.id);
    let restarts = [requested, queued, under_way].into_iter().flatten().filter(|_| ends);
    let mut steps: Vec<String> = restarts
        .map(|id| format!("restart {id} is cancelled, and its end is waited for"))
        .collect();
    steps.push(format!(
        "SearchCluster {}/{} is deleted once the reconciler has undone its changes",
        view.namespace, view.name
    ));
    let marked = pods.iter().filter(|pod| removal(pod.annotations()).is_some());
    let marked: Vec<String> = marked.map(ResourceExt::name_any).collect();
    if !marked.is_empty() {
        steps.push(format!("annotations of stayput are taken off the pods {}", marked.join(", ")));
    }
    let secrets: Vec<String> = named(cluster, pods).into_iter().collect();
    if !secrets.is_empty() {
        let (name, secrets) = (&view.name, secrets.join(", "));
        steps.push(format!(
            "{name} is taken out of the annotation {ALLOW} of the Secrets {secrets}"
        ));
    }
    steps
}

/// Removes stayput's annotations from the pods, except from those that another SearchCluster selects.
pub(crate) async fn pods(
    session: &Session,
    cluster: &SearchCluster,
    pods: &[Pod],
) -> Result<String, ApiError> {
    let clusters = apiserver::clusters(session).await?;
    let others = clusters.iter().filter(|other| other.name_any() != cluster.name_any());
    let others: Vec<_> = others.filter_map(|other| Some(other.check().ok()?.pods)).collect();
    let mut said = String::new();
    for pod in pods {
        if others.iter().any(|selector| selector.matches(pod.labels())) {
            said += &format!(
                "{} keeps its annotations: another SearchCluster selects it\n",
                pod.name_any()
            );
        } else if let Some(patch) = removal(pod.annotations()) {
            let pods = session.objects::<Pod>();
            apiserver::unless_gone(pods.merge(&pod.name_any(), &patch).await)?;
        }
    }
    Ok(said)
}

/// The patch that removes stayput's annotations, if there are any. With the one that names the revision of the
/// pod goes the label that is ahead of it.
pub(crate) fn removal(annotations: &BTreeMap<String, String>) -> Option<Value> {
    // The first one is ECK's, and belongs on a SearchCluster. By the second one the manager, which stays, gives its
    // engine variables at each start.
    let stays = [annotation::DISABLE, annotation::ENVIRONMENT];
    let ours = annotation::ALL.iter().filter(|key| !stays.contains(key));
    let there: serde_json::Map<String, Value> = ours
        .filter(|key| annotations.contains_key(**key))
        .map(|key| ((*key).to_owned(), Value::Null))
        .collect();
    let is_empty = there.is_empty();
    let mut metadata = json!({ "annotations": there });
    if let Some(revision) = annotations.get(annotation::ACTUAL_REVISION) {
        metadata["labels"] = json!({ REVISION_LABEL: revision });
    }
    (!is_empty).then(|| json!({ "metadata": metadata }))
}

/// Removes the permission of this SearchCluster from the Secrets that it names. A person without the
/// right to do that gets a hint how it is done.
pub(crate) async fn secrets(session: &Session, cluster: &SearchCluster, pods: &[Pod]) -> String {
    let secrets = session.objects::<Secret>();
    let mut said = String::new();
    for name in &named(cluster, pods) {
        let secret = match secrets.find(name).await {
            Ok(Some(secret)) => secret,
            Ok(None) => continue,
            Err(error) => {
                let told =
                    unread(&session.namespace, name, &cluster.name_any(), &error.to_string());
                said += &into_commands(&told, &session.options_in_shell());
                continue;
            }
        };
        let Some(others) = others(secret.annotations(), &cluster.name_any()) else { continue };
        let value = (!others.is_empty()).then(|| others.join(","));
        let patch = json!({"metadata": {"annotations": {ALLOW: value}}});
        if let Err(error) = apiserver::unless_gone(secrets.merge(name, &patch).await) {
            let command = allow_command(&session.namespace, name, &others);
            let command = into_commands(&command, &session.options_in_shell());
            said += &format!("Secret {name} still allows its use ({error}): {command}\n");
        }
    }
    said
}

/// A hint for a Secret that could not be read: its annotation must keep other users.
fn unread(namespace: &str, secret: &str, cluster: &str, error: &str) -> String {
    let path = ALLOW.replace('.', r"\.");
    format!(
        "Secret {secret} may still allow its use ({error}): take {cluster} out of its annotation {ALLOW}, \
         and leave the others; kubectl -n {namespace} get secret {secret} -o \
         jsonpath='{{.metadata.annotations.{path}}}' shows it\n"
    )
}

/// The Secrets that the spec names and that may allow their use.
pub(crate) fn named(cluster: &SearchCluster, pods: &[Pod]) -> BTreeSet<String> {
    let spec = cluster.completed_spec();
    let auth = &spec.manager.auth;
    let named =
        [&spec.engine.credentials_secret, &auth.jwt_key_secret, &auth.client_certificate_secret];
    let mut all: BTreeSet<String> = named.into_iter().flatten().cloned().collect();
    let sources = spec.config.sources.iter().filter_map(|source| source.secret.as_ref());
    for template in sources {
        if template.contains("{pod}") {
            all.extend(pods.iter().map(|pod| template.replace("{pod}", &pod.name_any())))
        } else {
            all.extend([template.clone()])
        }
    }
    all
}
