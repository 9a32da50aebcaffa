//! What one ledger write may change.

use super::facts::Input;
use super::{debts, left_out, members, superseding, updates};
use crate::{
    Direction, HistoryEntry, Ledger, MAX_HANDLED, MAX_HISTORY, Member, MemberStep, Outcome, Pod,
    Restart, annotation,
};

pub(super) fn check(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    let old = &facts.snapshot.ledger;
    if old == new {
        wrong.push("the ledger is written as it is".into());
    }
    match (&old.restart, &new.restart) {
        (None, None) => {}
        (None, Some(begun)) => {
            begins(facts, new, begun, wrong);
            if begun.direction != Direction::Open {
                wrong.push(format!("S11: {} begins as {:?}", begun.request.id, begun.direction));
            }
        }
        (Some(before), Some(after)) if before.request.id == after.request.id => {
            check_restart(before, after, wrong);
            members::check(facts, new, before, after, wrong);
        }
        (Some(before), Some(after)) => {
            ends(facts, before, new, wrong);
            begins(facts, new, after, wrong);
            if superseding::happens(before, new) {
                superseding::check(facts, before, new, wrong);
            } else if after.direction != Direction::Open {
                wrong.push(format!("S11: {} begins as {:?}", after.request.id, after.direction));
            }
        }
        (Some(before), None) => {
            ends(facts, before, new, wrong);
            if superseding::happens(before, new) {
                superseding::check(facts, before, new, wrong);
            }
        }
    }
    if let Some(queued) = &old.queued
        && new.queued.as_ref() != Some(queued)
    {
        let in_history = new.history.iter().any(|entry| entry.id == queued.id);
        let begun = new.restart.as_ref().is_some_and(|now| now.request.id == queued.id);
        if !in_history && !begun && !facts.snapshot.cluster.deleting {
            wrong.push(format!("L1: the queued {} is forgotten", queued.id));
        }
    }
    debts::check(facts, new, wrong);
    kept_stopped(facts, new, wrong);
    memory(old, new, wrong);
}

fn begins(facts: &Input, new: &Ledger, begun: &Restart, wrong: &mut Vec<String>) {
    let old = &facts.snapshot.ledger;
    let id = &begun.request.id;
    let waited = old.queued.as_ref().is_some_and(|queued| &queued.id == id);
    if old.has_handled(id) && !waited {
        wrong.push(format!("{id} is begun a second time"));
    }
    if !new.has_handled(id) {
        wrong.push(format!("{id} is begun and not remembered"));
    }
    if old.history.iter().any(|entry| &entry.id == id) {
        wrong.push(format!("{id} is begun and is over"));
    }
    // The first turn may be taken in the same write.
    let waits = |member: &Member| Member {
        step: MemberStep::Scheduled,
        stop_sequence: 0,
        start_sequence: 0,
        ..member.clone()
    };
    let members = begun.members.iter().map(waits).collect();
    members::check(facts, new, &Restart { members, ..begun.clone() }, begun, wrong);
    let mut uids: Vec<_> = begun.members.iter().map(|member| &member.pod_uid).collect();
    uids.sort();
    uids.dedup();
    if uids.len() != begun.members.len() {
        wrong.push(format!("{id} has a pod as a member twice"));
    }
}

fn check_restart(before: &Restart, after: &Restart, wrong: &mut Vec<String>) {
    let id = &before.request.id;
    if before.request != after.request || before.started != after.started {
        wrong.push(format!("{id}: what was asked is changed"));
    }
    if before.direction != after.direction && before.direction != Direction::Open {
        wrong.push(format!("S4: {id} turns from {:?}", before.direction));
    }
    if before.ending.is_some() && after.ending.is_none() {
        wrong.push(format!("S4: {id} was ending and goes on"));
    }
    let gives_back = after.members.iter().any(|member| member.step == MemberStep::GivingBack);
    let forgets =
        before.once.allocation && !after.once.allocation || before.once.flush && !after.once.flush;
    if forgets && !gives_back {
        wrong.push(format!("S4: {id} does once what it has done"));
    }
    if before.frozen.is_some() && before.frozen != after.frozen {
        wrong.push(format!("S11: the frozen set of {id} is moved"));
    }
}

fn ends(facts: &Input, before: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let id = &before.request.id;
    let Some(entry) = new.history.iter().rev().find(|entry| &entry.id == id) else {
        wrong.push(format!("L1: {id} is over and in no history"));
        return;
    };
    if entry.started != before.started || entry.strategy != before.request.strategy {
        wrong.push(format!("{id}: the history has another restart"));
    }
    if entry.outcome != Outcome::Done && entry.reason.trim().is_empty() {
        wrong.push(format!("{id} ends as {} without a reason", entry.outcome.as_str()));
    }
    allocation_is_settled(facts, id, new, wrong);
    for member in &before.members {
        let uid = &member.pod_uid;
        let to_be_stopped = facts.pod(uid).is_some_and(|pod| should_be_stopped(facts, pod));
        let gone = facts.pod(uid).is_none() || facts.kept_stopped(uid).is_some();
        match member.step {
            MemberStep::Finished => {}
            MemberStep::Scheduled if to_be_stopped || left_out::may_be(facts, before, uid) => {}
            MemberStep::Scheduled if facts.was_started_since(before, uid) => {}
            MemberStep::Scheduled if entry.outcome == Outcome::Done && !gone => {
                wrong.push(format!("S3: {id} is done and {} had no turn", member.node));
            }
            MemberStep::Scheduled => {}
            MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting => {
                let proven = facts.check_proven(member);
                let taken_over = new.restart.as_ref().is_some_and(|next| {
                    next.members
                        .iter()
                        .any(|successor| &successor.pod_uid == uid && successor.is_under_way())
                });
                if member.step == MemberStep::Restarting && entry.outcome == Outcome::Done {
                    updates::done(facts, member, wrong);
                }
                let is_safe = taken_over || members::is_started_or_owed(facts, member, new);
                match proven {
                    Err(why) if entry.outcome == Outcome::Done && !gone => {
                        wrong.push(format!("S3: {why}"));
                    }
                    Err(_) if !is_safe => {
                        wrong.push(format!("S8: {id} is over and {} is left down", member.node));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }
}

fn allocation_is_settled(facts: &Input, id: &str, new: &Ledger, wrong: &mut Vec<String>) {
    let held = facts.snapshot.ledger.debts.allocation.as_ref();
    let held = held.filter(|_| !facts.is_deleted_with_its_pods());
    if held.is_some_and(|debt| debt.restart == id)
        && new.debts.allocation.is_none()
        && !debts::allocation_is_paid(facts)
    {
        wrong.push(format!("S8: {id} is over and allocation is not known to be as it was"));
    }
}

fn kept_stopped(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    let cluster = &facts.snapshot.cluster;
    for entry in &new.kept_stopped {
        let before = facts.kept_stopped(&entry.pod_uid);
        if before == Some(entry) {
            continue;
        }
        let asked = facts.pod(&entry.pod_uid).is_some_and(|pod| should_be_stopped(facts, pod));
        if entry.releasing && asked && !cluster.deleting {
            wrong.push(format!("{} is lifted and was not asked to be", entry.node));
        }
        if !entry.releasing && !asked {
            wrong.push(format!("{} is kept stopped without a request", entry.node));
        }
        if before.is_some_and(|before| before.sequence >= entry.sequence) {
            wrong.push(format!("S4: the sequence of {}'s entry falls", entry.node));
        }
        if facts.manager(&entry.pod_uid).is_none_or(|manager| manager.sequence >= entry.sequence) {
            wrong.push(format!("S5: the entry of {} has a sequence that is used", entry.node));
        }
    }
    for entry in &facts.snapshot.ledger.kept_stopped {
        let stays = new.kept_stopped.iter().any(|other| other.pod_uid == entry.pod_uid);
        let paid = facts.is_started(&entry.pod_uid, entry.sequence);
        // A pod that is not in this snapshot may be in the next one, unless another pod replaced
        // it.
        let missing = facts.pod(&entry.pod_uid).is_none()
            && !facts.snapshot.pods.iter().any(|pod| pod.node == entry.node);
        if facts.is_deleted_with_its_pods() {
            continue;
        }
        if !stays && missing {
            wrong.push(format!("the entry of {} is dropped while its pod is not seen", entry.node));
        }
        if !stays && !paid && !new.debts.start.iter().any(|debt| debt.pod_uid == entry.pod_uid) {
            wrong.push(format!("L3: the entry of {} is forgotten", entry.node));
        }
    }
}

pub(super) fn should_be_stopped(facts: &Input, pod: &Pod) -> bool {
    let stopped = &facts.snapshot.cluster.stopped;
    stopped.contains(&pod.node)
        || stopped.contains(&pod.name)
        || pod.annotations.get(annotation::STOPPED).map(String::as_str) == Some("true")
}

fn memory(old: &Ledger, new: &Ledger, wrong: &mut Vec<String>) {
    if new.handled.len() > MAX_HANDLED || new.history.len() > MAX_HISTORY {
        wrong.push("the ledger remembers more than it may".into());
    }
    if !goes_on_from(&old.handled, &new.handled) {
        wrong.push("a request that was taken up is forgotten".into());
    }
    if !goes_on_from::<HistoryEntry>(&old.history, &new.history) {
        wrong.push("the history is rewritten".into());
    }
    if old.cluster_uuid.is_some() && old.cluster_uuid != new.cluster_uuid {
        wrong.push("the cluster's uuid is changed".into());
    }
}

/// Whether `new` is `old` without some entries at the front and with some added at the end.
fn goes_on_from<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    (0..=old.len()).any(|dropped| {
        let kept = &old[dropped..];
        let excess_only = dropped == 0 || new.len() >= MAX_HISTORY;
        excess_only && new.len() >= kept.len() && new[..kept.len()] == *kept
    })
}
