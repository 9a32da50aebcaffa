//! Voting exclusions: the debt is written first, only the node with the only vote is excluded, the
//! exclusion is removed after the proof, and never an exclusion of another client.

use std::collections::BTreeSet;

use super::facts::Input;
use crate::{Engine, ExclusionDebt, Ledger, MemberStep, Strategy, Voting};

/// Longer than any request may be delayed, in milliseconds.
const LATE_REQUEST_WINDOW: u64 = 300_000;

/// Committed and accepted configuration, and the excluded nodes.
type Seen<'a> = (&'a BTreeSet<String>, &'a BTreeSet<String>, &'a BTreeSet<String>);

fn seen<'a>(facts: &Input<'a>) -> Option<Seen<'a>> {
    match facts.engine()?.voting.as_ref().ok()? {
        Voting::Configurations { committed, accepted, excluded } => {
            Some((committed, accepted, excluded))
        }
        Voting::MinimumMasterNodes(_) => None,
    }
}

fn debt<'a>(facts: &Input<'a>) -> Option<&'a ExclusionDebt> {
    facts.snapshot.ledger.debts.exclusion.as_ref()
}

/// The nodes that are excluded, but not by us.
fn foreign(facts: &Input, excluded: &BTreeSet<String>) -> Vec<String> {
    let ledger = &facts.snapshot.ledger;
    let late = |node: &String| {
        let lifted = ledger.removed_exclusions.iter().find(|one| &one.node == node);
        lifted.is_some_and(|one| facts.snapshot.now.since(one.at) < LATE_REQUEST_WINDOW)
    };
    let owed = |node: &String| debt(facts).is_some_and(|debt| &debt.node == node);
    excluded.iter().filter(|node| !late(node) && !owed(node)).cloned().collect()
}

pub(super) fn exclude(facts: &Input, node: &str, wrong: &mut Vec<String>) {
    let turn = debt(facts).filter(|debt| debt.node == node).and_then(|debt| {
        let member = facts.member(&debt.pod_uid)?;
        (member.step == MemberStep::Restarting && member.node == node).then_some(member)
    });
    match turn {
        None => wrong.push(format!("S6: {node} is excluded from voting, which is not owed")),
        Some(member)
            if facts
                .manager(&member.pod_uid)
                .is_none_or(|one| one.sequence >= member.stop_sequence) =>
        {
            wrong.push(format!("{node} is excluded from voting after its stop"));
        }
        Some(_) => {}
    }
    if facts.snapshot.cluster.paused {
        wrong.push("S9: a node is excluded from voting while paused".into());
    }
    let (Some((committed, accepted, excluded)), Some(listed)) = (seen(facts), facts.node(node))
    else {
        wrong.push(format!("{node} is excluded from voting, and who votes is not known"));
        return;
    };
    let alone = BTreeSet::from([listed.id.clone()]);
    if *committed != alone || *accepted != alone {
        wrong.push(format!("{node} is excluded from voting and has not the only vote"));
    }
    if excluded.contains(node) {
        wrong.push(format!("{node} is excluded from voting and is already"));
    }
    let others = foreign(facts, excluded);
    if !others.is_empty() {
        wrong.push(format!("{node} is excluded from voting beside {others:?} of another client"));
    }
}

pub(super) fn clear(facts: &Input, wrong: &mut Vec<String>) {
    let Some((.., excluded)) = seen(facts) else {
        wrong.push("voting exclusions are removed and not known".into());
        return;
    };
    if excluded.is_empty() {
        wrong.push("voting exclusions are removed and there are none".into());
    }
    let others = foreign(facts, excluded);
    if !others.is_empty() {
        wrong.push(format!("voting exclusions of another client are removed: {others:?}"));
    }
    let members = facts.restart().map(|restart| &restart.members[..]).unwrap_or_default();
    for member in members.iter().filter(|member| member.step == MemberStep::Restarting) {
        let its = debt(facts).is_some_and(|debt| debt.pod_uid == member.pod_uid);
        if its && !facts.has_joined(member) {
            wrong.push(format!("S7: {} may vote again before it has joined", member.node));
        }
    }
}

/// What one write may change of the debts.
pub(super) fn owed(facts: &Input, new: &Ledger, wrong: &mut Vec<String>) {
    let (before, after) = (debt(facts), new.debts.exclusion.as_ref());
    let node = |debt: Option<&ExclusionDebt>| debt.map(|debt| debt.node.clone());
    if node(before) == node(after) {
        return;
    }
    // One write may have the end of one node's turn and the beginning of the next one's.
    if let Some(before) = before {
        paid(facts, new, before, wrong);
    }
    if let Some(made) = after {
        made_by(facts, new, made, wrong);
    }
}

/// A debt is made for a node whose turn it is.
fn made_by(facts: &Input, new: &Ledger, made: &ExclusionDebt, wrong: &mut Vec<String>) {
    let turn = new.restart.iter().any(|restart| {
        restart.request.strategy != Strategy::Coordinated
            && restart.members.iter().any(|member| {
                member.pod_uid == made.pod_uid && member.step == MemberStep::Restarting
            })
    });
    if !turn {
        wrong.push(format!("an exclusion of {} is owed, whose turn it is not", made.node));
    }
    if seen(facts).is_none_or(|(.., excluded)| !foreign(facts, excluded).is_empty()) {
        wrong.push(format!("an exclusion of {} is owed beside that of another client", made.node));
    }
}

/// A debt is paid once the engine no longer has the exclusion.
fn paid(facts: &Input, new: &Ledger, before: &ExclusionDebt, wrong: &mut Vec<String>) {
    let deleted = facts.is_deleted_with_its_pods();
    let gone = match (facts.engine().map(|engine| &engine.voting), seen(facts)) {
        (_, Some((.., excluded))) => !excluded.contains(&before.node),
        (Some(Ok(Voting::MinimumMasterNodes(_))), None) => true,
        (None | Some(_), None) => deleted,
    };
    if !gone {
        wrong.push(format!("S8: the exclusion of {} is forgotten", before.node));
    }
    if !deleted && !new.removed_exclusions.iter().any(|one| one.node == before.node) {
        wrong.push(format!("no entry remembers a late exclusion of {}", before.node));
    }
}

/// Whether the exclusion that is owed is that of `name`, which is owed a start as well: it is removed
/// after that one is paid.
pub(super) fn is_removed_later(facts: &Input, name: &str) -> bool {
    let is_its = debt(facts).is_some_and(|debt| debt.node == name);
    is_its && facts.snapshot.ledger.debts.start.iter().any(|debt| debt.node == name)
}

/// An exclusion exists, or may exist, that no member under way is going to remove, and the engine
/// answers, so that it could be removed now.
pub(super) fn is_exclusion_unowned(facts: &Input) -> bool {
    let by_no_member = |debt: &ExclusionDebt| {
        facts.member(&debt.pod_uid).is_none_or(|member| !member.is_under_way())
    };
    facts.engine().is_some() && debt(facts).is_some_and(by_no_member)
}

/// Whether `node` may be the recipient of a vote that another node is handing over.
pub(super) fn taken_away(facts: &Input, engine: &Engine, node: &str) -> Option<String> {
    let other = debt(facts).map(|debt| &debt.node).filter(|other| *other != node)?;
    let this = engine.nodes.iter().find(|listed| listed.name == node)?;
    let members = facts.restart().map(|restart| &restart.members[..]).unwrap_or_default();
    let back = members.iter().any(|member| &member.node == other && facts.is_back(member));
    (this.is_master_eligible() && !back).then(|| format!("{other} hands its vote over"))
}
