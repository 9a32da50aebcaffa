//! Checks that the reconciler reaches the engine. How the cluster is, a condition says.

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    // Without a snapshot the group of the managers says that nothing is known.
    let Ok(taken) = &facts.snapshot else { return Vec::new() };
    let Err(unknown) = &taken.saved.snapshot.engine else { return Vec::new() };
    let (namespace, name) = (facts.namespace(), facts.name());
    let remedy = format!("kubectl -n {namespace} get searchcluster {name} -o yaml");
    let message = format!("the engine does not answer the reconciler: {}", unknown.message);
    vec![Finding::error("engine_unreachable", facts.object(), message, remedy)]
}
