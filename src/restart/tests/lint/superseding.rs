//! A restart supersedes another one under way: only if that can go neither forward nor back, only on
//! request of a person, and with all nodes and debts of the other one.

use super::facts::Input;
use crate::{Direction, Ledger, Member, Outcome, Request, Restart, Strategy, annotation};
use stayput_api::State;

/// Whether a ledger write lets a restart supersede another one whose nodes are under way.
pub(super) fn happens(before: &Restart, new: &Ledger) -> bool {
    let superseded = new
        .history
        .iter()
        .any(|entry| entry.id == before.request.id && entry.outcome == Outcome::Superseded);
    superseded || new.restart.is_some() && before.members.iter().any(Member::is_under_way)
}

pub(super) fn check(facts: &Input, before: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let id = &before.request.id;
    let Some(after) = &new.restart else {
        wrong.push(format!("S11: {id} is superseded by no restart"));
        return;
    };
    let next = &after.request.id;
    let entry = new.history.iter().rev().find(|entry| &entry.id == id);
    let asked = facts.snapshot.cluster.annotations.get(annotation::REQUEST);
    let asked = asked.and_then(|text| Request::parse(text).ok());
    let queued = facts.snapshot.ledger.queued.as_ref();
    let coordinated = |restart: &Restart| restart.request.strategy == Strategy::Coordinated;
    for (is_right, what) in [
        (coordinated(before) && coordinated(after), "without being both coordinated"),
        (before.direction == Direction::Forward, "which can still turn back"),
        (before.frozen.is_some(), "of which nothing is frozen"),
        (after.direction == Direction::Forward, "and could turn back to what is gone"),
        (after.frozen.is_none() && !after.once.flush, "with its steps already done"),
        (after.ending.is_none(), "and is ending"),
        (entry.is_some_and(|entry| entry.outcome == Outcome::Superseded), "which ends otherwise"),
        (
            queued == Some(&after.request) || asked.as_ref() == Some(&after.request),
            "and no user requested it",
        ),
        (
            after.request.not_before.is_none_or(|moment| facts.snapshot.now >= moment),
            "before the moment asked for",
        ),
        (
            before.members.iter().any(|member| member.is_under_way() && is_lost(facts, member)),
            "which can come to its end",
        ),
    ] {
        if !is_right {
            wrong.push(format!("S11: {next} supersedes {id}, {what}"));
        }
    }
    for member in before.members.iter().filter(|member| member.is_under_way()) {
        check_taken_over(facts, member, after, new, wrong);
    }
    allocation(facts, after, new, wrong);
}

/// Whether it has not started on its frozen config and cannot any more.
fn is_lost(facts: &Input, member: &Member) -> bool {
    let Some(manager) = facts.manager(&member.pod_uid) else { return false };
    let run = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    let runs = matches!(manager.state, State::Running | State::Starting);
    if runs && run != member.expected.as_ref() {
        return true;
    }
    let is_back = runs && facts.is_back(member);
    !is_back && manager.mounted != member.expected
}

/// S4, S5, S8: no node is left behind, and no request sent before can take effect any more.
fn check_taken_over(
    facts: &Input,
    member: &Member,
    after: &Restart,
    new: &Ledger,
    wrong: &mut Vec<String>,
) {
    let (node, next) = (&member.node, &after.request.id);
    let Some(successor) =
        after.members.iter().find(|successor| successor.pod_uid == member.pod_uid)
    else {
        wrong.push(format!("S11: {node} is left behind by {next}"));
        return;
    };
    let is_kept = new.kept_stopped.iter().any(|entry| entry.pod_uid == member.pod_uid);
    if !successor.is_under_way() && !is_kept {
        wrong.push(format!("S8: {node} is taken over by {next} and not under way"));
    }
    if successor.stop_sequence <= member.start_sequence {
        wrong.push(format!(
            "S5: {node} is taken over with stop {}, and start {} may still arrive",
            successor.stop_sequence, member.start_sequence
        ));
    }
    if facts.pod(&member.pod_uid).is_none() {
        wrong.push(format!("{node} is taken over and its pod is not seen"));
    }
}

/// The debt stays, and the new nodes hold it.
fn allocation(facts: &Input, after: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let Some(owed) = &facts.snapshot.ledger.debts.allocation else { return };
    let Some(still) = &new.debts.allocation else {
        wrong.push("S8: allocation is owed and not taken over".into());
        return;
    };
    if still.restart != owed.restart || still.before != owed.before {
        wrong.push("S8: allocation is taken over as another debt".into());
    }
    for member in after.members.iter().filter(|member| member.is_under_way()) {
        if !still.holders.contains(&member.pod_uid) {
            wrong.push(format!("S8: allocation is not held for {}", member.node));
        }
    }
}
