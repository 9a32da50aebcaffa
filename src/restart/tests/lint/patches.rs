//! Writes to pods and to the SearchCluster: each with the value that was read, none without a change.

use super::facts::Input;
use crate::{Action, Phase, annotation};

pub(super) fn check(facts: &Input, action: &Action, wrong: &mut Vec<String>) {
    let cluster = &facts.snapshot.cluster;
    let ledger = &facts.snapshot.ledger;
    match action {
        Action::AddFinalizer if cluster.finalizer => {
            wrong.push("the finalizer is added and is there".into());
        }
        Action::AddFinalizer if cluster.deleting => {
            wrong.push("a finalizer is added to what is being deleted".into());
        }
        Action::RemoveFinalizer => {
            if !cluster.finalizer {
                wrong.push("the finalizer is removed and is not there".into());
            }
            if !ledger.debts.is_empty() || ledger.restart.is_some() {
                wrong.push("L2: the finalizer is removed and something is owed".into());
            }
            let is_kept = !ledger.kept_stopped.is_empty() || ledger.queued.is_some();
            if !cluster.deleting && is_kept {
                wrong.push("L2: the finalizer is removed and still needed".into());
            }
        }
        Action::ClaimTrigger { phase, request } => {
            if cluster.annotations.get(annotation::PHASE) != Some(phase) {
                wrong.push(format!("the phase {phase} is claimed and is not there"));
            }
            let asked = Phase::parse(phase).ok().and_then(Phase::asks_for);
            if asked != Some(request.strategy) {
                wrong.push(format!("the phase {phase} does not ask for {:?}", request.strategy));
            }
        }
        Action::ClearAnnotation { key, value } if cluster.annotations.get(key) != Some(value) => {
            wrong.push(format!("{key}={value} is removed and is not there"));
        }
        Action::PatchPod { uid, changes } => patch(facts, uid, changes, wrong),
        _ => {}
    }
}

fn patch(
    facts: &Input,
    uid: &str,
    changes: &std::collections::BTreeMap<String, crate::Change>,
    wrong: &mut Vec<String>,
) {
    let Some(pod) = facts.pod(uid) else {
        wrong.push(format!("a patch of {uid}, which is no pod of this snapshot"));
        return;
    };
    let name = &pod.name;
    if changes.is_empty() {
        wrong.push(format!("{name} is patched for nothing"));
    }
    let ours = [annotation::PHASE, annotation::SHOWN, annotation::LAST_RESTART, annotation::NUDGE];
    for (key, change) in changes {
        if !ours.contains(&key.as_str()) {
            wrong.push(format!("{name}: {key} is not ours to write"));
        }
        if pod.annotations.get(key) != change.seen.as_ref() {
            wrong.push(format!("{name}: {key} was not seen as {:?}", change.seen));
        }
    }
    if changes.values().all(|change| change.seen == change.wanted) {
        wrong.push(format!("{name} is patched as it is"));
    }
    if changes.contains_key(annotation::PHASE) && !changes.contains_key(annotation::SHOWN) {
        wrong.push(format!("{name}: a late patch of its phase would be taken for a person's"));
    }
    // The phase and our copy of it must agree.
    let after = |key: &str| match changes.get(key) {
        Some(change) => change.wanted.clone(),
        None => pod.annotations.get(key).cloned(),
    };
    if changes.contains_key(annotation::PHASE) || changes.contains_key(annotation::SHOWN) {
        let shown = after(annotation::SHOWN);
        let phase =
            shown.as_deref().and_then(|shown| shown.split_once(' ')).map(|(_, phase)| phase);
        if after(annotation::PHASE).as_deref() != phase {
            wrong.push(format!(
                "{name}: phase {:?} beside shown {shown:?} would be taken for a person's",
                after(annotation::PHASE)
            ));
        }
    }
}
