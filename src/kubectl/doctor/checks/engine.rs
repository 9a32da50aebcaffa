//! Checks that the reconciler reaches the engine, and may change it.

use stayput_restart::Color;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    // Without a snapshot the group of the managers says that nothing is known.
    let Ok(taken) = &facts.snapshot else { return Vec::new() };
    let (namespace, name) = (facts.namespace(), facts.name());
    let engine = match &taken.saved.snapshot.engine {
        Ok(engine) => engine,
        Err(unknown) => {
            let remedy = format!("kubectl -n {namespace} get searchcluster {name} -o yaml");
            let message = format!("the engine does not answer the reconciler: {}", unknown.message);
            return vec![Finding::error("engine_unreachable", facts.object(), message, remedy)];
        }
    };
    let is_red = engine.health.as_ref().is_ok_and(|health| health.color == Color::Red);
    let red = is_red.then(|| {
        let remedy = format!("kubectl stayput -n {namespace} plan {name}");
        Finding::error("red", facts.object(), "the cluster is red: rolling restarts wait", remedy)
    });
    red.into_iter().collect()
}
