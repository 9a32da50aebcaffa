//! Checks the spec of the SearchCluster, and the pods that it finds.

use stayput_kube_access::cluster::Scheme;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let edit = || format!("kubectl -n {namespace} edit searchcluster {name}");
    let faults = facts.cluster.check().err().unwrap_or_default();
    let mut found: Vec<Finding> = faults
        .iter()
        .map(|fault| Finding::error("invalid_spec", facts.object(), fault.to_string(), edit()))
        .collect();
    if facts.cluster.metadata.deletion_timestamp.is_some() {
        found.push(Finding::error(
            "deleting",
            facts.object(),
            "it is being deleted: the reconciler undoes its changes and begins no restart",
            format!("kubectl stayput -n {namespace} status {name}"),
        ));
    }
    if facts.cluster.spec.paused {
        found.push(
            Finding::error(
                "paused",
                facts.object(),
                "spec.paused is true: no node is stopped",
                format!("kubectl stayput -n {namespace} resume {name}"),
            )
            .into_warning(),
        );
    }
    let engine = &facts.cluster.spec.engine;
    let sends_plain = engine.scheme == Scheme::Http && engine.credentials_secret.is_some();
    if sends_plain && engine.allow_plain_credentials {
        found.push(
            Finding::error(
                "plain_credentials",
                facts.object(),
                "the engine's credentials are sent over plain http, where they can be read on the \
                 network",
                edit(),
            )
            .into_warning(),
        );
    }
    found.extend(pods(facts));
    found
}

fn pods(facts: &Facts) -> Option<Finding> {
    let namespace = facts.namespace();
    let remedy = format!("kubectl -n {namespace} get pods --show-labels");
    match &facts.pods {
        Err(unknown) => {
            Some(Finding::error("no_pods", facts.object(), &unknown.message, remedy).into_unknown())
        }
        Ok(pods) if pods.is_empty() => {
            let message = "its selector finds no pod in its namespace";
            Some(Finding::error("no_pods", facts.object(), message, remedy))
        }
        Ok(_) => None,
    }
}
