//! Template changes of pods that no step of a forecast carries out.

use std::collections::BTreeSet;

use super::{ForecastNode, ForecastStep};
use crate::{Pod, PodUpdate, Policy, Snapshot, Strategy, UpdateStep};

/// The nodes whose pods lack a template change that none of `steps` carries out, and what happens to it.
pub(super) fn other_updates(
    snapshot: &Snapshot,
    policy: &Policy,
    strategy: Strategy,
    steps: &[ForecastStep],
) -> Vec<ForecastNode> {
    if policy.update.is_empty() {
        return Vec::new();
    }
    let nodes = steps.iter().flat_map(|step| &step.nodes);
    let carried_out: BTreeSet<&str> =
        nodes.filter(|node| !node.because.is_empty()).map(|node| node.name.as_str()).collect();
    let other = |pod: &Pod| {
        let update = pod.update.as_ref().ok()?.as_ref()?;
        let is_other = update.step != UpdateStep::None && !carried_out.contains(pod.node.as_str());
        is_other.then(|| ForecastNode {
            name: pod.node.clone(),
            message: what_becomes_of(update, snapshot, policy, strategy, pod),
            step: update.step,
            because: update.because.clone(),
        })
    };
    let mut nodes: Vec<ForecastNode> = snapshot.pods.iter().filter_map(other).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

fn what_becomes_of(
    update: &PodUpdate,
    snapshot: &Snapshot,
    policy: &Policy,
    strategy: Strategy,
    pod: &Pod,
) -> String {
    let text = if !policy.update.contains(&update.step) {
        "not carried out: spec.update.allow does not have this step; add it there, or delete the pod \
         yourself"
    } else if let Some(why) =
        pod.undeletable.as_ref().filter(|_| update.step == UpdateStep::Replace)
    {
        return format!("not carried out: the pod cannot be deleted: {why}");
    } else if let Some(why) =
        pod.unchangeable.as_ref().filter(|_| update.step != UpdateStep::Replace)
    {
        return format!("not carried out: the apiserver refuses to change the pod: {why}");
    } else if update.step == UpdateStep::Relabel {
        if snapshot.cluster.paused {
            "without a restart, once spec.paused is false"
        } else {
            "without a restart"
        }
    } else if strategy == Strategy::Coordinated {
        "a coordinated restart does not carry it out; another restart follows"
    } else {
        "with its restart"
    };
    text.to_owned()
}
