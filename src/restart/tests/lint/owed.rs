//! Debts: there before the deed, gone after the proof.

use super::view::View;
use crate::Ledger;

pub(super) fn check(view: &View, new: &Ledger, wrong: &mut Vec<String>) {
    let old = &view.snapshot.ledger.debts;
    if old.is_empty() && !new.debts.is_empty() && !view.snapshot.cluster.finalizer {
        wrong.push("a debt is made before the finalizer is on".into());
    }
    for debt in &old.start {
        let stays = new.debts.start.iter().find(|other| other.pod_uid == debt.pod_uid);
        match stays {
            Some(other) if other.sequence < debt.sequence => {
                wrong.push(format!("S4: the sequence owed to {} falls", debt.node));
            }
            Some(_) => {}
            None if view.is_told_to_run(&debt.pod_uid, debt.sequence) => {}
            None => wrong.push(format!("S8: the start owed to {} is forgotten", debt.node)),
        }
    }
    allocation(view, new, wrong);
    records(view, new, wrong);
    super::votes::owed(view, new, wrong);
}

fn allocation(view: &View, new: &Ledger, wrong: &mut Vec<String>) {
    let Some(before) = &view.snapshot.ledger.debts.allocation else {
        let engine = view.engine().and_then(|engine| engine.allocation.as_ref().ok());
        if let Some(made) = &new.debts.allocation {
            match engine {
                None => wrong.push("what allocation was is owed and not known".into()),
                Some(now) => {
                    // Somebody's mark of an earlier restart holds the setting before it.
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
        Some(after) if after.restart != before.restart && allocation_is_paid(view) => {}
        Some(after) if after.before != before.before || after.restart != before.restart => {
            wrong.push("what allocation was is rewritten".into());
        }
        Some(_) => {}
        None if allocation_is_paid(view) => {}
        None => wrong.push("S8: the allocation owed is forgotten".into()),
    }
}

/// The engine says that no mark of the debt's restart is there (any more).
pub(super) fn allocation_is_paid(view: &View) -> bool {
    let Some(debt) = &view.snapshot.ledger.debts.allocation else { return true };
    let Some(Ok(now)) = view.engine().map(|engine| engine.allocation.as_ref()) else {
        return false;
    };
    now.marker.as_ref().is_none_or(|marker| marker.restart != debt.restart)
}

fn records(view: &View, new: &Ledger, wrong: &mut Vec<String>) {
    for debt in &view.snapshot.ledger.debts.records {
        if new.debts.records.iter().any(|other| other.node_id == debt.node_id) {
            continue;
        }
        let seen = view.engine().and_then(|engine| engine.records.as_ref().ok());
        let gone = match seen {
            None => false,
            Some(None) => true,
            Some(Some(records)) => !records
                .iter()
                .any(|record| record.node_id == debt.node_id && record.reason == debt.restart),
        };
        if !gone {
            wrong.push(format!("S8: the record of {} is forgotten", debt.node));
        }
    }
    for debt in &new.debts.records {
        let had = |records: &[crate::RecordDebt]| records.contains(debt);
        if !had(&view.snapshot.ledger.debts.records)
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
