//! Debts: written before the action, removed after the proof.

use std::collections::BTreeMap;

use super::facts::Input;
use crate::annotation::ENVIRONMENT;
use crate::{Change, Ledger, StartDebt};

pub(super) fn check(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    let old = &facts.snapshot.ledger.debts;
    if old.is_empty() && !new.debts.is_empty() && !facts.snapshot.cluster.finalizer {
        wrong.push("a debt is made before the finalizer is on".into());
    }
    if facts.is_deleted_with_its_pods() {
        return;
    }
    for debt in &old.start {
        let stays = new.debts.start.iter().find(|other| other.pod_uid == debt.pod_uid);
        match stays {
            Some(other) if other.sequence < debt.sequence => {
                wrong.push(format!("S4: the sequence owed to {} falls", debt.node));
            }
            Some(_) => {}
            None if facts.pod(&debt.pod_uid).is_none() => absent(facts, debt, wrong),
            None if facts.is_started(&debt.pod_uid, debt.sequence) => {}
            None if is_up_to_another(facts, new, debt) => {}
            None => wrong.push(format!("S8: the start owed to {} is forgotten", debt.node)),
        }
    }
    allocation(facts, new, wrong);
    records(facts, new, wrong);
    super::votes::owed(facts, new, wrong);
}

/// A node that is kept stopped needs no start now, and its entry starts it later. Only its pod must be
/// as it was before an update: the entry knows nothing of that.
fn is_up_to_another(facts: &Input, new: &Ledger, debt: &StartDebt) -> bool {
    let is_kept = new.kept_stopped.iter().any(|entry| entry.pod_uid == debt.pod_uid);
    let pod = facts.pod(&debt.pod_uid);
    let live = pod.and_then(|pod| Some((pod, pod.live.as_ref()?)));
    let left = debt.update.as_ref().zip(live).is_some_and(|(fixed, (pod, live))| {
        let patch = &fixed.update.patch;
        let has_variables = patch.variables.as_ref().is_some_and(|change| {
            let now = pod.annotations.get(ENVIRONMENT);
            change.seen != change.wanted && now == change.wanted.as_ref()
        });
        has_variables
            || has_any(&patch.images, &live.images)
            || has_any(&patch.resources, &live.resources)
    });
    is_kept && !left
}

/// Whether a container has a value that the update gave it.
fn has_any(changes: &BTreeMap<String, Change>, live: &BTreeMap<String, String>) -> bool {
    changes.iter().any(|(container, change)| {
        let is_new = change.seen != change.wanted;
        is_new && live.get(container).is_some_and(|now| change.wanted.as_ref() == Some(now))
    })
}

/// The start owed to a pod that is not listed is forgotten.
fn absent(facts: &Input, debt: &StartDebt, wrong: &mut Vec<String>) {
    let is_replaced = facts.snapshot.pods.iter().any(|pod| pod.node == debt.node);
    let is_long = |since| facts.snapshot.now.since(since) >= facts.policy.phase_timeout;
    if !is_replaced && !debt.absent_since.is_some_and(is_long) {
        wrong.push(format!("S8: the start owed to {} is forgotten, as it is missed", debt.node));
    }
}

fn allocation(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    let Some(before) = &facts.snapshot.ledger.debts.allocation else {
        let engine = facts.engine().and_then(|engine| engine.allocation.as_ref().ok());
        if let Some(made) = &new.debts.allocation {
            match engine {
                None => wrong.push("what allocation was is owed and not known".into()),
                Some(now) => {
                    // The marker of an earlier restart contains the setting before that restart.
                    let was = now.marker.as_ref().map_or(&now.setting, |marker| &marker.before);
                    if was != &made.before {
                        wrong.push(format!("allocation was {was:?}, owed is {:?}", made.before));
                    }
                }
            }
        }
        return;
    };
    match &new.debts.allocation {
        Some(after) if after.restart != before.restart && allocation_is_paid(facts) => {}
        Some(after) if after.before != before.before || after.restart != before.restart => {
            wrong.push("what allocation was is rewritten".into());
        }
        Some(_) => {}
        None if allocation_is_paid(facts) => {}
        None => wrong.push("S8: the allocation owed is forgotten".into()),
    }
}

/// The engine has no marker of the debt's restart.
pub(super) fn allocation_is_paid(facts: &Input) -> bool {
    let Some(debt) = &facts.snapshot.ledger.debts.allocation else { return true };
    let Some(Ok(now)) = facts.engine().map(|engine| engine.allocation.as_ref()) else {
        return false;
    };
    now.marker.as_ref().is_none_or(|marker| marker.restart != debt.restart)
}

fn records(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    for debt in &facts.snapshot.ledger.debts.records {
        if new.debts.records.iter().any(|other| other.node_id == debt.node_id) {
            continue;
        }
        let seen = facts.engine().and_then(|engine| engine.records.as_ref().ok());
        let gone = match seen {
            None => false,
            Some(None) => true,
            Some(Some(records)) => !records.iter().any(|record| {
                let reason = format!("{} {}", facts.snapshot.cluster.name, debt.restart);
                record.node_id == debt.node_id && record.reason == reason
            }),
        };
        if !gone {
            wrong.push(format!("S8: the record of {} is forgotten", debt.node));
        }
    }
    for debt in &new.debts.records {
        let had = |records: &[crate::RecordDebt]| records.contains(debt);
        if !had(&facts.snapshot.ledger.debts.records)
            && !new
                .restart
                .iter()
                .flat_map(|restart| &restart.members)
                .any(|member| member.pod_uid == debt.pod_uid)
        {
            wrong.push(format!("a record is owed for {}, which is no member", debt.node));
        }
    }
}
