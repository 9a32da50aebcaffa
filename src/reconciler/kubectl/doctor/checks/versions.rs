//! Whether the parts of stayput are of one version.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{Facts, Finding};
use crate::cluster::crd;

const OURS: &str = env!("CARGO_PKG_VERSION");

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = definition(facts).into_iter().collect();
    let Ok(taken) = &facts.snapshot else { return found };
    let reconciler = taken.saved.version();
    if reconciler != OURS {
        found.push(
            Finding::error(
                "version",
                "Deployment/stayput-reconciler",
                format!("the reconciler has version {reconciler}, and kubectl stayput {OURS}"),
                "kubectl stayput --version; kubectl apply -k deploy/",
            )
            .into_warning(),
        );
    }
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in &taken.saved.snapshot.pods {
        if let Ok(manager) = &pod.manager
            && manager.version != reconciler
        {
            others.entry(&manager.version).or_default().push(&pod.name);
        }
    }
    let namespace = facts.namespace();
    found.extend(others.into_iter().map(|(version, pods)| {
        Finding::error(
            "version",
            format!("Pod/{}", pods[0]),
            format!(
                "the managers of {} have version {version}, and the reconciler {reconciler}",
                pods.join(", ")
            ),
            format!("kubectl stayput -n {namespace} diff {}", facts.name()),
        )
        .into_warning()
    }));
    found
}

/// Fields that the definition there does not have: Kubernetes drops them without a word.
fn definition(facts: &Facts) -> Option<Finding> {
    let object = "CustomResourceDefinition/searchclusters.stayput.dev";
    let apply = "kubectl apply --server-side -f deploy/base/crd.yaml";
    let theirs = match &facts.definition {
        Err(unknown) => {
            return Some(
                Finding::error("definition", object, &unknown.message, apply).into_unknown(),
            );
        }
        Ok(None) => return None,
        Ok(Some(theirs)) => fields(theirs),
    };
    let ours = fields(&crd());
    let mut missing = ours.difference(&theirs);
    let first = missing.next()?;
    Some(Finding::error(
        "definition",
        object,
        format!(
            "it is of another version than kubectl stayput: it has no {first}{}; Kubernetes drops what \
             is written there",
            if missing.next().is_some() { " and others" } else { "" }
        ),
        apply,
    ))
}

/// The paths of all fields.
fn fields(definition: &CustomResourceDefinition) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for version in &definition.spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        collect(&json!(schema), "", &mut all);
    }
    all
}

fn collect(schema: &Value, at: &str, all: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        collect(field, &path, all);
        all.insert(path);
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|inner| schema.get(inner)) {
        collect(inner, at, all);
    }
}
