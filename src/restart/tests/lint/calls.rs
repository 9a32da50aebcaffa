//! Calls to the engine: nothing that is not owed first, nothing that is not ours, no clean-up
//! before the proof.

use super::view::View;
use crate::{AllocationBefore, Marker, Member, Outcome, Step, Strategy};

pub(super) fn tighten(view: &View, value: &str, marker: &Marker, wrong: &mut Vec<String>) {
    let owed = view.snapshot.ledger.debts.allocation.as_ref();
    let journaled =
        owed.is_some_and(|debt| debt.restart == marker.restart && debt.before == marker.before);
    if !journaled {
        wrong.push("S6: allocation is tightened and not owed".into());
    }
    // A restart that took another's place goes on with the debt, and the mark, of that one.
    let inherited = owed.is_some_and(|debt| {
        let members = view.restart().into_iter().flat_map(|restart| &restart.members);
        let mut under_way = members.filter(|member| member.is_under_way());
        under_way.any(|member| debt.holders.contains(&member.pod_uid))
            && view
                .snapshot
                .ledger
                .history
                .iter()
                .any(|entry| entry.id == marker.restart && entry.outcome == Outcome::Superseded)
    });
    if !inherited && view.restart().is_none_or(|restart| restart.request.id != marker.restart) {
        wrong.push(format!("allocation is tightened for {}, which is not on", marker.restart));
    }
    if value != "primaries" {
        wrong.push(format!("allocation is set to {value}"));
    }
    if view.snapshot.cluster.paused {
        wrong.push("S9: allocation is tightened while paused".into());
    }
    let Some(Ok(allocation)) = view.engine().map(|engine| engine.allocation.as_ref()) else {
        wrong.push("allocation is tightened and not known".into());
        return;
    };
    if allocation.marker.as_ref().is_some_and(|there| there.restart != marker.restart) {
        wrong.push("allocation is tightened over the mark of another restart".into());
    }
    let now = allocation.setting.transient.as_ref().or(allocation.setting.persistent.as_ref());
    if now.is_some_and(|setting| setting != "all") {
        wrong.push(format!("allocation is {now:?} and would be loosened or set for nothing"));
    }
}

pub(super) fn restore(view: &View, before: &AllocationBefore, wrong: &mut Vec<String>) {
    let Some(Ok(allocation)) = view.engine().map(|engine| engine.allocation.as_ref()) else {
        wrong.push("allocation is set back and not known".into());
        return;
    };
    let Some(marker) = &allocation.marker else {
        wrong.push("allocation is set back and bears no mark of ours".into());
        return;
    };
    // What somebody else has set since stands, and only our mark goes.
    // Each of the two settings by itself: only what still has our value was ours to set back.
    let mut right = allocation.setting.clone();
    if right.persistent.as_deref() == Some("primaries") {
        right.persistent.clone_from(&marker.before.persistent);
    }
    if right.transient.as_deref() == Some("primaries") && marker.before.transient.is_some() {
        right.transient.clone_from(&marker.before.transient);
    }
    if right != *before {
        wrong.push(format!("allocation is set back to {before:?} instead of {right:?}"));
    }
    // Whoever has a record instead does not depend on the setting.
    let Some(restart) = view.restart() else { return };
    let owed = view.snapshot.ledger.debts.allocation.as_ref();
    let held = |member: &&Member| {
        owed.is_some_and(|debt| debt.holders.contains(&member.pod_uid))
            && member.step == Step::Restarting
    };
    for member in restart.members.iter().filter(held) {
        if view.may_be_stopped(member) && !view.is_back(member) {
            wrong.push(format!("S7: allocation is set back before {} is back", member.node));
        }
    }
}

pub(super) fn flush(view: &View, node: &str, wrong: &mut Vec<String>) {
    let Some(restart) = view.restart() else {
        wrong.push(format!("a flush for {node} without a restart"));
        return;
    };
    let fits = match restart.request.strategy {
        Strategy::Coordinated => node == "*" && !restart.once.flush,
        Strategy::Rolling | Strategy::Immediate => restart
            .members
            .iter()
            .any(|member| member.node == node && member.step == Step::Restarting),
    };
    if !fits {
        wrong.push(format!("a flush for {node}, which is not about to be stopped"));
    }
    if view.snapshot.flushed.contains(node) {
        wrong.push(format!("a second flush for {node}"));
    }
}

pub(super) fn put_record(view: &View, node_id: &str, reason: &str, wrong: &mut Vec<String>) {
    let debts = &view.snapshot.ledger.debts;
    if !debts.records.iter().any(|debt| debt.node_id == node_id && debt.restart == reason) {
        wrong.push(format!("S6: a record for {node_id} that is not owed"));
    }
    let turn = view.restart().is_some_and(|restart| {
        restart.request.id == reason
            && restart.members.iter().any(|member| {
                member.step == Step::Restarting && member.node_id.as_deref() == Some(node_id)
            })
    });
    if !turn {
        wrong.push(format!("a record for {node_id}, whose turn it is not"));
    }
    if view.snapshot.cluster.paused {
        wrong.push("S9: a record is put while paused".into());
    }
}

pub(super) fn delete_record(view: &View, node_id: &str, wrong: &mut Vec<String>) {
    let ledger = &view.snapshot.ledger;
    let records = view.engine().and_then(|engine| engine.records.as_ref().ok());
    let record = records
        .and_then(|records| records.as_ref())
        .and_then(|records| records.iter().find(|record| record.node_id == node_id));
    let Some(record) = record else {
        wrong.push(format!("the record of {node_id} is deleted and was not seen"));
        return;
    };
    let ours = record.is_restart
        && (ledger.has_handled(&record.reason)
            || ledger.debts.records.iter().any(|debt| debt.restart == record.reason));
    if !ours {
        wrong.push(format!("the record of {node_id} is deleted and is not ours"));
    }
    let Some(restart) = view.restart().filter(|restart| restart.request.id == record.reason) else {
        return;
    };
    for member in &restart.members {
        let its = member.node_id.as_deref() == Some(node_id) && member.step == Step::Restarting;
        if its && view.may_be_stopped(member) && !view.is_back(member) {
            wrong.push(format!("S7: the record of {} is deleted before it is back", member.node));
        }
    }
}
