//! Whether the parts of stayput are of one version.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Facts, Finding};
use crate::cluster::missing_fields;

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
        Ok(Some(theirs)) => theirs,
    };
    let schemas = theirs.spec.versions.iter().filter_map(|version| version.schema.as_ref());
    let schemas: Vec<Value> = schemas.map(|schema| json!(schema.open_api_v3_schema)).collect();
    let missing = missing_fields(&schemas)?;
    Some(Finding::error(
        "definition",
        object,
        format!(
            "it is older than kubectl stayput: it has no {missing}; Kubernetes drops what is written there"
        ),
        apply,
    ))
}
