//! One restart takes the place of another that is under way: only where that can go neither on nor
//! back, only because a person asked, and with everything it was answerable for.

use super::view::View;
use crate::{Direction, Ledger, Member, Outcome, Request, Restart, Strategy, annotation};
use stayput_api::State;

/// Whether a write has one restart take the place of another whose nodes are under way.
pub(super) fn is_so(before: &Restart, new: &Ledger) -> bool {
    let superseded = new
        .history
        .iter()
        .any(|entry| entry.id == before.request.id && entry.outcome == Outcome::Superseded);
    superseded || new.restart.is_some() && before.members.iter().any(Member::is_under_way)
}

pub(super) fn check(view: &View, before: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let id = &before.request.id;
    let Some(after) = &new.restart else {
        wrong.push(format!("S11: {id} is superseded by nobody"));
        return;
    };
    let next = &after.request.id;
    let entry = new.history.iter().rev().find(|entry| &entry.id == id);
    let asked = view.snapshot.cluster.annotations.get(annotation::REQUEST);
    let asked = asked.and_then(|text| Request::parse(text).ok());
    let queued = view.snapshot.ledger.queued.as_ref();
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
            "and nobody asked for it",
        ),
        (
            after.request.not_before.is_none_or(|moment| view.snapshot.now >= moment),
            "before the moment asked for",
        ),
        (
            before.members.iter().any(|member| member.is_under_way() && is_lost(view, member)),
            "which can come to its end",
        ),
    ] {
        if !is_right {
            wrong.push(format!("S11: {next} takes the place of {id}, {what}"));
        }
    }
    for member in before.members.iter().filter(|member| member.is_under_way()) {
        goes_over(view, member, after, new, wrong);
    }
    allocation(view, after, new, wrong);
}

/// What has not come up on its frozen config and cannot any more.
fn is_lost(view: &View, member: &Member) -> bool {
    let Some(manager) = view.manager(&member.pod_uid) else { return false };
    let run = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    let runs = matches!(manager.state, State::Running | State::Starting);
    if runs && run != member.expected.as_ref() {
        return true;
    }
    let is_back = runs && view.is_back(member);
    !is_back && manager.mounted != member.expected
}

/// S4, S5, S8: nobody is left behind, and nothing sent before can reach anybody any more.
fn goes_over(view: &View, member: &Member, after: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let (node, next) = (&member.node, &after.request.id);
    let Some(vote_recipient) =
        after.members.iter().find(|vote_recipient| vote_recipient.pod_uid == member.pod_uid)
    else {
        wrong.push(format!("S11: {node} is left behind by {next}"));
        return;
    };
    let fenced = new.kept_stopped.iter().any(|fence| fence.pod_uid == member.pod_uid);
    if !vote_recipient.is_under_way() && !fenced {
        wrong.push(format!("S8: {node} is taken over by {next} and nobody's"));
    }
    if vote_recipient.stop_sequence <= member.start_sequence {
        wrong.push(format!(
            "S5: {node} is taken over with stop {}, and start {} may be on its way",
            vote_recipient.stop_sequence, member.start_sequence
        ));
    }
    if view.pod(&member.pod_uid).is_none() {
        wrong.push(format!("{node} is taken over and its pod is not seen"));
    }
}

/// What is owed goes on being owed, by the new nodes, without a moment in which it is due.
fn allocation(view: &View, after: &Restart, new: &Ledger, wrong: &mut Vec<String>) {
    let Some(owed) = &view.snapshot.ledger.debts.allocation else { return };
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
