//! What one ledger write may change.

use super::view::View;
use super::{members, owed, supersedes};
use crate::{
    Direction, HistoryEntry, Ledger, MAX_HANDLED, MAX_HISTORY, Member, Outcome, Pod, Restart, Step,
    annotation,
};

pub(super) fn check(view: &View, new: &Ledger, wrong: &mut Vec<String>) {
    let old = &view.snapshot.ledger;
    if old == new {
        wrong.push("the ledger is written as it is".into());
    }
    match (&old.restart, &new.restart) {
        (None, None) => {}
        (None, Some(begun)) => {
            begins(view, new, begun, wrong);
            if begun.direction != Direction::Open {
                wrong.push(format!("S11: {} begins as {:?}", begun.request.id, begun.direction));
            }
        }
        (Some(before), Some(after)) if before.request.id == after.request.id => {
            goes_on(before, after, wrong);
            members::go_on(view, new, before, after, wrong);
        }
        (Some(before), Some(after)) => {
            ends(view, before, new, wrong);
            begins(view, new, after, wrong);
            if supersedes::is_so(before, new) {
                supersedes::check(view, before, new, wrong);
            } else if after.direction != Direction::Open {
                wrong.push(format!("S11: {} begins as {:?}", after.request.id, after.direction));
            }
        }
        (Some(before), None) => {
            ends(view, before, new, wrong);
            if supersedes::is_so(before, new) {
                supersedes::check(view, before, new, wrong);
            }
        }
    }
    if let Some(queued) = &old.queued
        && new.queued.as_ref() != Some(queued)
    {
        let told = new.history.iter().any(|entry| entry.id == queued.id);
        let begun = new.restart.as_ref().is_some_and(|now| now.request.id == queued.id);
        if !told && !begun {
            wrong.push(format!("L1: the queued {} is forgotten", queued.id));
        }
    }
    owed::check(view, new, wrong);
    fences(view, new, wrong);
    memory(old, new, wrong);
}

fn begins(view: &View, new: &Ledger, begun: &Restart, wrong: &mut Vec<String>) {
    let old = &view.snapshot.ledger;
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
        step: Step::Scheduled,
        stop_sequence: 0,
        start_sequence: 0,
        ..member.clone()
    };
    let members = begun.members.iter().map(waits).collect();
    members::go_on(view, new, &Restart { members, ..begun.clone() }, begun, wrong);
    let mut uids: Vec<_> = begun.members.iter().map(|member| &member.pod_uid).collect();
    uids.sort();
    uids.dedup();
    if uids.len() != begun.members.len() {
        wrong.push(format!("{id} has a pod as a member twice"));
    }
}

fn goes_on(before: &Restart, after: &Restart, wrong: &mut Vec<String>) {
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
    if before.once.allocation && !after.once.allocation || before.once.flush && !after.once.flush {
        wrong.push(format!("S4: {id} does once what it has done"));
    }
    if before.frozen.is_some() && before.frozen != after.frozen {
        wrong.push(format!("S11: the frozen set of {id} is moved"));
    }
}

fn ends(view: &View, before: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let id = &before.request.id;
    let Some(entry) = new.history.iter().rev().find(|entry| &entry.id == id) else {
        wrong.push(format!("L1: {id} is over and in no history"));
        return;
    };
    if entry.started != before.started || entry.strategy != before.request.strategy {
        wrong.push(format!("{id}: the history tells another restart"));
    }
    if entry.outcome != Outcome::Done && entry.reason.trim().is_empty() {
        wrong.push(format!("{id} ends as {} without a reason", entry.outcome.as_str()));
    }
    allocation_is_settled(view, id, new, wrong);
    for member in &before.members {
        let uid = &member.pod_uid;
        let to_be_stopped = view.pod(uid).is_some_and(|pod| kept_stopped(view, pod));
        let gone = view.pod(uid).is_none() || view.fence(uid).is_some();
        match member.step {
            Step::Finished => {}
            Step::Scheduled if to_be_stopped => {}
            Step::Scheduled if entry.outcome == Outcome::Done && !gone => {
                wrong.push(format!("S3: {id} is done and {} had no turn", member.node));
            }
            Step::Scheduled => {}
            Step::Restarting | Step::Aborting => {
                let proven = view.is_proven(member);
                let taken_over = new.restart.as_ref().is_some_and(|next| {
                    next.members.iter().any(|vote_recipient| {
                        &vote_recipient.pod_uid == uid && vote_recipient.is_under_way()
                    })
                });
                let told = taken_over || members::is_left_well(view, member, new);
                match proven {
                    Err(why) if entry.outcome == Outcome::Done && !gone => {
                        wrong.push(format!("S3: {why}"));
                    }
                    Err(_) if !told => {
                        wrong.push(format!("S8: {id} is over and {} is left down", member.node));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }
}

fn allocation_is_settled(view: &View, id: &str, new: &Ledger, wrong: &mut Vec<String>) {
    let held = view.snapshot.ledger.debts.allocation.as_ref();
    if held.is_some_and(|debt| debt.restart == id)
        && new.debts.allocation.is_none()
        && !owed::allocation_is_paid(view)
    {
        wrong.push(format!("S8: {id} is over and allocation is not known to be as it was"));
    }
}

fn fences(view: &View, new: &Ledger, wrong: &mut Vec<String>) {
    let cluster = &view.snapshot.cluster;
    for fence in &new.kept_stopped {
        let before = view.fence(&fence.pod_uid);
        if before == Some(fence) {
            continue;
        }
        let asked = view.pod(&fence.pod_uid).is_some_and(|pod| kept_stopped(view, pod));
        if fence.releasing && asked && !cluster.deleting {
            wrong.push(format!("{} is lifted and was not asked to be", fence.node));
        }
        if !fence.releasing && !asked {
            wrong.push(format!("{} is kept stopped and nobody asked", fence.node));
        }
        if before.is_some_and(|before| before.sequence >= fence.sequence) {
            wrong.push(format!("S4: the sequence of {}'s fence falls", fence.node));
        }
        if view.manager(&fence.pod_uid).is_none_or(|manager| manager.sequence >= fence.sequence) {
            wrong.push(format!("S5: the fence of {} has a sequence that is used", fence.node));
        }
    }
    for fence in &view.snapshot.ledger.kept_stopped {
        let stays = new.kept_stopped.iter().any(|other| other.pod_uid == fence.pod_uid);
        let paid = view.is_told_to_run(&fence.pod_uid, fence.sequence);
        // A pod that is not in this look may be in the next one, unless another is in its place.
        let missing = view.pod(&fence.pod_uid).is_none()
            && !view.snapshot.pods.iter().any(|pod| pod.node == fence.node);
        if !stays && missing {
            wrong.push(format!("the fence of {} is dropped while its pod is not seen", fence.node));
        }
        if !stays && !paid && !new.debts.start.iter().any(|debt| debt.pod_uid == fence.pod_uid) {
            wrong.push(format!("L3: the fence of {} is forgotten", fence.node));
        }
    }
}

fn kept_stopped(view: &View, pod: &Pod) -> bool {
    let stopped = &view.snapshot.cluster.stopped;
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

/// Whether `new` is `old` with some left away at the front and some added at the end.
fn goes_on_from<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    (0..=old.len()).any(|dropped| {
        let kept = &old[dropped..];
        let excess_only = dropped == 0 || new.len() >= MAX_HISTORY;
        excess_only && new.len() >= kept.len() && new[..kept.len()] == *kept
    })
}
