//! Calls to the engine: each needs its debt in the ledger first, none changes what is not ours, and
//! nothing is cleaned up before the new process is proven.

use super::facts::Input;
use crate::{AllocationBefore, Marker, Member, MemberStep, Outcome, RecordDebt, Strategy};

pub(super) fn tighten(facts: &Input, value: &str, marker: &Marker, wrong: &mut Vec<String>) {
    let owed = facts.snapshot.ledger.debts.allocation.as_ref();
    let journaled =
        owed.is_some_and(|debt| debt.restart == marker.restart && debt.before == marker.before);
    if !journaled {
        wrong.push("S6: allocation is tightened and not owed".into());
    }
    // A restart that superseded another one keeps its debt and marker.
    let inherited = owed.is_some_and(|debt| {
        let members = facts.restart().into_iter().flat_map(|restart| &restart.members);
        let mut under_way = members.filter(|member| member.is_under_way());
        under_way.any(|member| debt.holders.contains(&member.pod_uid))
            && facts
                .snapshot
                .ledger
                .history
                .iter()
                .any(|entry| entry.id == marker.restart && entry.outcome == Outcome::Superseded)
    });
    if !inherited && facts.restart().is_none_or(|restart| restart.request.id != marker.restart) {
        wrong.push(format!("allocation is tightened for {}, which is not on", marker.restart));
    }
    if value != "primaries" {
        wrong.push(format!("allocation is set to {value}"));
    }
    if facts.snapshot.cluster.paused {
        wrong.push("S9: allocation is tightened while paused".into());
    }
    let Some(Ok(allocation)) = facts.engine().map(|engine| engine.allocation.as_ref()) else {
        wrong.push("allocation is tightened and not known".into());
        return;
    };
    if allocation.marker.as_ref().is_some_and(|there| there.restart != marker.restart) {
        wrong.push("allocation is tightened over the marker of another restart".into());
    }
    let now = allocation.setting.transient.as_ref().or(allocation.setting.persistent.as_ref());
    if now.is_some_and(|setting| setting != "all") {
        wrong.push(format!("allocation is {now:?} and would be loosened or set for nothing"));
    }
}

pub(super) fn restore(facts: &Input, before: &AllocationBefore, wrong: &mut Vec<String>) {
    let Some(Ok(allocation)) = facts.engine().map(|engine| engine.allocation.as_ref()) else {
        wrong.push("allocation is restored and not known".into());
        return;
    };
    let Some(marker) = &allocation.marker else {
        wrong.push("allocation is restored and has no marker of ours".into());
        return;
    };
    // A value that another client has set since stays, and only our marker is removed. This holds
    // for each of the two settings: only one that still has our value is restored.
    let mut right = allocation.setting.clone();
    if right.persistent.as_deref() == Some("primaries") {
        right.persistent.clone_from(&marker.before.persistent);
    }
    if right.transient.as_deref() == Some("primaries") && marker.before.transient.is_some() {
        right.transient.clone_from(&marker.before.transient);
    }
    if right != *before {
        wrong.push(format!("allocation is restored to {before:?} instead of {right:?}"));
    }
    // A node with a shutdown record does not depend on the setting.
    let Some(restart) = facts.restart() else { return };
    let owed = facts.snapshot.ledger.debts.allocation.as_ref();
    let held = |member: &&Member| {
        owed.is_some_and(|debt| debt.holders.contains(&member.pod_uid))
            && member.step == MemberStep::Restarting
    };
    // What never comes back must not keep the copies of the others from coming back.
    let is_late = facts.is_late_forward(restart);
    for member in restart.members.iter().filter(held).filter(|_| !is_late) {
        let is_waited_for = !facts.has_joined(member) && !facts.is_silent_for_long(member);
        if facts.may_be_stopped(member) && is_waited_for {
            wrong.push(format!("S7: allocation is restored before {} has joined", member.node));
        }
    }
}

pub(super) fn flush(facts: &Input, node: &str, wrong: &mut Vec<String>) {
    let Some(restart) = facts.restart() else {
        wrong.push(format!("a flush for {node} without a restart"));
        return;
    };
    let fits = match restart.request.strategy {
        Strategy::Coordinated => node == "*" && !restart.once.flush,
        Strategy::Rolling | Strategy::Immediate => restart
            .members
            .iter()
            .any(|member| member.node == node && member.step == MemberStep::Restarting),
    };
    if !fits {
        wrong.push(format!("a flush for {node}, which is not about to be stopped"));
    }
    if facts.snapshot.flushed.contains(node) {
        wrong.push(format!("a second flush for {node}"));
    }
    if facts.is_red() {
        wrong.push(format!("a flush for {node} that waits for a missing primary"));
    }
}

pub(super) fn put_record(facts: &Input, node_id: &str, reason: &str, wrong: &mut Vec<String>) {
    let debts = &facts.snapshot.ledger.debts;
    let reason_of = |id: &str| format!("{} {id}", facts.snapshot.cluster.name);
    let is_owed = |debt: &RecordDebt| debt.node_id == node_id && reason_of(&debt.restart) == reason;
    if !debts.records.iter().any(is_owed) {
        wrong.push(format!("S6: a record for {node_id} that is not owed"));
    }
    let turn = facts.restart().is_some_and(|restart| {
        reason_of(&restart.request.id) == reason
            && restart.members.iter().any(|member| {
                member.step == MemberStep::Restarting && member.node_id.as_deref() == Some(node_id)
            })
    });
    if !turn {
        wrong.push(format!("a record for {node_id}, whose turn it is not"));
    }
    if facts.snapshot.cluster.paused {
        wrong.push("S9: a record is put while paused".into());
    }
}

pub(super) fn delete_record(facts: &Input, node_id: &str, wrong: &mut Vec<String>) {
    let ledger = &facts.snapshot.ledger;
    let records = facts.engine().and_then(|engine| engine.records.as_ref().ok());
    let record = records
        .and_then(|records| records.as_ref())
        .and_then(|records| records.iter().find(|record| record.node_id == node_id));
    let Some(record) = record else {
        wrong.push(format!("the record of {node_id} is deleted and was not seen"));
        return;
    };
    let Some((_, id)) = record.reason.split_once(' ').filter(|(cluster, id)| {
        let is_known =
            ledger.has_handled(id) || ledger.debts.records.iter().any(|debt| debt.restart == **id);
        record.is_restart && *cluster == facts.snapshot.cluster.name && is_known
    }) else {
        wrong.push(format!("the record of {node_id} is deleted and is not ours"));
        return;
    };
    let Some(restart) = facts.restart().filter(|restart| restart.request.id == id) else {
        return;
    };
    for member in &restart.members {
        let its =
            member.node_id.as_deref() == Some(node_id) && member.step == MemberStep::Restarting;
        if its && facts.may_be_stopped(member) && !facts.has_joined(member) {
            wrong
                .push(format!("S7: the record of {} is deleted before it has joined", member.node));
        }
    }
}
