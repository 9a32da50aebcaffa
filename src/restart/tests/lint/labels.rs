//! Labels of operators' pods: ahead and back only with a reason.

use super::facts::Input;
use crate::{MemberStep, OperatorKind, Pod, UpdateStep};

/// Only of an operator's pod, to what its owner wants, by a step that is allowed and keeps the pod.
pub(super) fn ahead(facts: &Input, pod: &Pod, label: &str, wrong: &mut Vec<String>) {
    let name = &pod.name;
    let update = pod.update.as_ref().ok().and_then(Option::as_ref);
    let may = update.is_some_and(|update| {
        label == update.to
            && update.step < UpdateStep::Replace
            && facts.policy.update.contains(&update.step)
    });
    if !may || pod.operator.is_none() {
        wrong.push(format!("S14: {name} is labelled ahead, and nothing brings it there"));
    }
    let cluster = &facts.snapshot.cluster;
    if !cluster.finalizer || cluster.deleting || !cluster.overlaps.is_empty() {
        wrong.push(format!("S14: {name} is labelled ahead, and nobody sets that back"));
    }
}

/// Only while nothing is under way, and nobody brings the pod to the revision in its label.
pub(super) fn back(facts: &Input, pod: &Pod, wrong: &mut Vec<String>) {
    let update = pod.update.as_ref().ok().and_then(Option::as_ref);
    let is_brought = update.is_some_and(|update| {
        (UpdateStep::Restart..UpdateStep::Replace).contains(&update.step)
            && facts.policy.update.contains(&update.step)
            && pod.unchangeable.is_none()
    });
    let member = facts.member(&pod.uid).filter(|member| member.is_under_way());
    if is_brought && !facts.snapshot.cluster.deleting && facts.start_debt(&pod.uid).is_none() {
        wrong.push(format!("S14: the label of {} goes back, and its update is to come", pod.name));
    }
    if member.is_some_and(|member| member.step == MemberStep::Restarting) && !is_brought {
        let is_relabelled = update.is_some_and(|update| update.step == UpdateStep::Relabel);
        if !is_relabelled {
            wrong.push(format!("S14: the label of {} goes back under way", pod.name));
        }
    }
}

/// An operator would delete a pod that is not ready and has an old label, and, until it has seen the new ones, others.
pub(super) fn stop(facts: &Input, uid: &str, wrong: &mut Vec<String>) {
    let Some(pod) = facts.pod(uid) else { return };
    let just_moved = |pod: &&Pod| {
        let ahead = pod.ahead.as_ref();
        let makes = pod.operator.as_ref().is_some_and(|it| it.kind != OperatorKind::Eck);
        makes && ahead.is_some_and(|ahead| facts.snapshot.now.since(ahead.since) < 3_000)
    };
    if let Some(moved) = facts.snapshot.pods.iter().find(just_moved) {
        wrong.push(format!(
            "S14: {} is stopped, and the label of {} has just moved",
            pod.name, moved.name
        ));
    }
    let member = facts.member(uid).filter(|member| member.step == MemberStep::Restarting);
    let fixed = member.and_then(|member| member.update.as_ref());
    let fixed = fixed.filter(|fixed| fixed.update.step < UpdateStep::Replace);
    let (Some(fixed), Some(live), true) = (fixed, &pod.live, pod.operator.is_some()) else {
        return;
    };
    let label = pod.ahead.as_ref().map_or(&live.revision, |ahead| &ahead.revision);
    if *label != fixed.update.to {
        wrong.push(format!("S14: {} is stopped, and its label is old", pod.name));
    }
}
