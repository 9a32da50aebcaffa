//! How a member may change in one ledger write.

use super::facts::Input;
use super::{left_out, updates};
use crate::{Direction, Ledger, Member, MemberStep, Outcome, Restart, Sources, Strategy};
use stayput_api::{ConfigChoice, Desired, RequestKind, State};

pub(super) fn check(
    facts: &Input,
    ledger: &Ledger,
    before: &Restart,
    after: &Restart,
    wrong: &mut Vec<String>,
) {
    for member in &before.members {
        match after.members.iter().find(|other| other.pod_uid == member.pod_uid) {
            Some(now) => check_member(facts, ledger, after, member, now, wrong),
            None if member.step == MemberStep::Scheduled
                || facts.pod(&member.pod_uid).is_none() => {}
            None => wrong.push(format!("S4: {} is no member any more", member.node)),
        }
    }
    for added in &after.members {
        let known = before.members.iter().any(|member| member.pod_uid == added.pod_uid);
        let mut members = before.members.iter();
        let succeeds =
            members.any(|member| member.pod == added.pod && facts.pod(&member.pod_uid).is_none());
        if !known && added.step == MemberStep::Restarting && !succeeds {
            // It may take its slot in the same write.
            slot(facts, after, added, wrong);
        } else if !known && added.step != MemberStep::Scheduled && !succeeds {
            wrong.push(format!("S4: {} comes as {:?}", added.node, added.step));
        }
    }
    let slots = |restart: &Restart| {
        restart.members.iter().filter(|one| one.step == MemberStep::Restarting).count()
    };
    let (under_way, before_it) = (slots(after), slots(before));
    let newly = after.members.iter().filter(|member| {
        let was = before.members.iter().find(|other| other.pod_uid == member.pod_uid);
        member.step == MemberStep::Restarting
            && was.is_none_or(|was| was.step == MemberStep::Scheduled)
    });
    let is_lost =
        |member: &Member| facts.pod(&member.pod_uid).is_some_and(|pod| facts.whole_set_failed(pod));
    // A set that failed as a whole is restarted at once: it is down already.
    let only_lost =
        newly.clone().all(is_lost) && newly.clone().all(|one| one.ephemeral_id.is_none());
    if restart_is_zone(after) {
        all_or_nothing(facts, before, after, wrong);
    }
    let most = match after.request.strategy {
        Strategy::Coordinated => usize::MAX,
        Strategy::Rolling if restart_is_zone(after) => usize::MAX,
        Strategy::Rolling | Strategy::Immediate => facts.budget(),
    };
    if under_way > most && under_way > before_it && !only_lost {
        wrong.push(format!("S1: {under_way} nodes hold a slot, {most} may"));
    }
}

/// Whether the nodes of the restart are stopped together.
fn restart_is_zone(restart: &Restart) -> bool {
    restart.request.strategy == Strategy::Rolling && restart.request.target.zone.is_some()
}

/// When the first of a zone takes its slot, so do all others; but not a node that is to be kept
/// stopped: it is stopped after the zone and by itself, and a turn would start it again.
fn all_or_nothing(facts: &Input, before: &Restart, after: &Restart, wrong: &mut Vec<String>) {
    let waits =
        |restart: &Restart| restart.members.iter().all(|one| one.step == MemberStep::Scheduled);
    let goes = after.members.iter().any(|member| member.step == MemberStep::Restarting);
    let may_stay = |member: &Member| facts.is_to_be_stopped(&member.pod_uid);
    let mut waiting = after.members.iter().filter(|member| member.step == MemberStep::Scheduled);
    let stays = waiting.find(|member| !may_stay(member));
    if let Some(stays) = stays.filter(|_| waits(before) && goes) {
        wrong.push(format!("S1: the zone goes and {} stays", stays.node));
    }
}

/// Whether the engine came back by itself after our stop, on a config that has been replaced since,
/// in a restart that does not turn back.
fn came_back(facts: &Input, restart: &Restart, member: &Member) -> bool {
    let goes_on = restart.request.strategy == Strategy::Coordinated;
    goes_on
        && facts.manager(&member.pod_uid).is_some_and(|manager| {
            manager.sequence == member.stop_sequence
                && manager.desired == Desired::Running
                && manager.run.as_ref().is_some_and(|run| run.checksum != member.expected)
        })
}

fn check_member(
    facts: &Input,
    ledger: &Ledger,
    restart: &Restart,
    old: &Member,
    new: &Member,
    wrong: &mut Vec<String>,
) {
    let node = &old.node;
    if (old.step, new.step) == (MemberStep::GivingBack, MemberStep::Scheduled) {
        return given_back(facts, ledger, old, new, wrong);
    }
    let was_stopped = (old.step, new.step) == (MemberStep::GivingBack, MemberStep::Restarting)
        && facts.may_be_stopped(old);
    if new.step < old.step && !was_stopped {
        wrong.push(format!("S4: {node} goes from {:?} back to {:?}", old.step, new.step));
    }
    // A silent manager may have taken the stop: until the engine has ended, that is found out later.
    let is_known_to_run = facts.manager(&old.pod_uid).is_none() && facts.lists_old_process(old);
    if new.step == MemberStep::GivingBack
        && old.step == MemberStep::Restarting
        && facts.may_be_stopped(old)
        && !facts.runs_on_another(old)
        && !is_known_to_run
        && !facts.is_back_in_another_pod(old)
    {
        wrong.push(format!("S7: {node} gives its slot back and may be stopped"));
    }
    if new.stop_sequence < old.stop_sequence || new.start_sequence < old.start_sequence {
        wrong.push(format!("S4: a sequence of {node} falls"));
    }
    let ends = old.step == MemberStep::Scheduled && new.step == MemberStep::Finished;
    if ends
        && left_out::is_own(restart)
        && new.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Interfered)
        && !left_out::may_be(facts, restart, &old.pod_uid)
    {
        wrong.push(format!("L1: {node} is left out, and lacks what its owner wants"));
    }
    if old.step == MemberStep::Finished && old != new {
        wrong.push(format!("S4: {node} is finished and changes"));
    }
    // A start on another config, or one that is tried again, has a sequence of its own. A member
    // that is finished in the same write sends neither of them any more.
    let again = matches!(new.step, MemberStep::Restarting | MemberStep::Finished)
        && old.stop_sequence == new.stop_sequence;
    if old.step != MemberStep::Scheduled
        && (old.stop_sequence, old.start_sequence) != (new.stop_sequence, new.start_sequence)
        && !again
        && !came_back(facts, restart, old)
    {
        wrong.push(format!("S5: {node} gets other sequences in the middle"));
    }
    if old.step != MemberStep::Scheduled
        && new.step != MemberStep::Finished
        && old.ephemeral_id.is_some()
        && old.ephemeral_id != new.ephemeral_id
    {
        wrong.push(format!("S7: {node} forgets the process it had"));
    }
    if old.step == MemberStep::Restarting
        && new.step != MemberStep::Finished
        && old.expected != new.expected
    {
        let moved = facts.pod(&new.pod_uid).is_some_and(|pod| match &pod.sources {
            Sources::Checksum(now) => new.expected.as_ref() == Some(now),
            Sources::Unknown(_) => true,
            Sources::Absent(_) => false,
        });
        if restart.frozen.is_some() || !moved {
            wrong.push(format!("S3: {node} expects {:?}, which is not asked for", new.expected));
        }
    }
    compensation(facts, old, new, wrong);
    match (old.step, new.step) {
        (MemberStep::Scheduled, MemberStep::Restarting) => slot(facts, restart, new, wrong),
        (MemberStep::Scheduled | MemberStep::Restarting, MemberStep::Aborting)
            if new.compensation.is_none() =>
        {
            wrong.push(format!("{node} is being brought back without a compensation"));
        }
        (MemberStep::Scheduled, MemberStep::Aborting) => {
            wrong.push(format!("{node} was not under way and is being brought back"));
        }
        (
            MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting,
            MemberStep::Finished,
        ) => finished(facts, ledger, old, new, wrong),
        _ => {}
    }
}

/// A slot was given back: the stop that may still arrive will be refused, and nothing is held.
fn given_back(facts: &Input, ledger: &Ledger, old: &Member, new: &Member, wrong: &mut Vec<String>) {
    let node = &old.node;
    let fenced = facts
        .manager(&old.pod_uid)
        .is_none_or(|manager| manager.sequence >= old.start_sequence && manager.durable);
    if !fenced || (facts.manager(&old.pod_uid).is_none() && facts.pod(&old.pod_uid).is_some()) {
        wrong.push(format!("S8: {node} waits again, and its stop may still arrive"));
    }
    if new.stop_sequence != 0 || new.start_sequence != 0 || new.compensation.is_some() {
        wrong.push(format!("S6: {node} waits again with the sequences of its slot"));
    }
    if new.given_back != old.given_back {
        wrong.push(format!("{node} forgets how often it gave its slot back"));
    }
    let holds = ledger.debts.allocation.iter().any(|debt| debt.holders.contains(&old.pod_uid));
    if holds {
        wrong.push(format!("L5: {node} waits again and holds allocation"));
    }
}

fn compensation(facts: &Input, old: &Member, new: &Member, wrong: &mut Vec<String>) {
    let Some(back) = &new.compensation else {
        if old.compensation.is_some() && new.step != MemberStep::Finished {
            wrong.push(format!("S4: {} loses its compensation", old.node));
        }
        return;
    };
    if old.compensation.as_ref() == Some(back) {
        return;
    }
    let manager = facts.manager(&new.pod_uid);
    if let Some(manager) = manager
        && old.compensation.is_none()
        && facts.policy.rollback
        && manager.sequence >= new.stop_sequence
        && !matches!(manager.state, State::Running | State::Starting)
        && manager.last_good.is_some()
        && manager.last_good != new.expected
        && manager.last_good != manager.mounted
        && back.config == ConfigChoice::Mounted
    {
        wrong.push(format!("S8: {} is not brought back on what last worked", new.node));
    }
    let known = manager.map_or(0, |manager| manager.sequence);
    let floor = old
        .compensation
        .as_ref()
        .map_or(new.start_sequence, |before| before.start_sequence)
        .max(known);
    let first = back.stop_sequence.unwrap_or(back.start_sequence);
    if first <= floor || back.stop_sequence.is_some_and(|stop| stop >= back.start_sequence) {
        wrong.push(format!("S5: the compensation of {} is not above {floor}: {back:?}", new.node));
    }
}

fn leaves(facts: &Input, member: &Member) -> bool {
    facts.pod(&member.pod_uid).is_some_and(|pod| pod.leaving.is_some())
}

fn slot(facts: &Input, restart: &Restart, member: &Member, wrong: &mut Vec<String>) {
    let node = &member.node;
    updates::slot(facts, member, wrong);
    let mut owed = facts.snapshot.ledger.debts.start.iter();
    let cluster = &facts.snapshot.cluster;
    for (is_so, what) in [
        (cluster.paused, "S9: while paused"),
        (restart.ending.is_some(), "S9: though the restart is ending"),
        (restart.direction == Direction::Back, "though the restart turns back"),
        (cluster.deleting, "while the SearchCluster is deleted"),
        (!cluster.overlaps.is_empty(), "while selectors overlap"),
        (owed.any(|debt| facts.is_start_waited_for(debt)), "while a start is owed"),
        (facts.start_debt(&member.pod_uid).is_some(), "and is owed a start"),
        (is_kept_stopped(facts, member), "and is kept stopped"),
        (leaves(facts, member), "and leaves the cluster"),
        (
            super::votes::is_exclusion_unowned(facts),
            "while a voting exclusion is owed by no node under way",
        ),
    ] {
        if is_so {
            wrong.push(format!("{node} takes a slot {what}"));
        }
    }
    let Some(manager) = facts.manager(&member.pod_uid) else {
        wrong.push(format!("S6: {node} takes a slot and its manager is not known"));
        return;
    };
    if member.stop_sequence <= manager.sequence || member.start_sequence <= member.stop_sequence {
        wrong.push(format!(
            "S5: {node} takes stop {} and start {} beside {}",
            member.stop_sequence, member.start_sequence, manager.sequence
        ));
    }
    if let Some(listed) = facts.node(node)
        && member.ephemeral_id.as_ref() != Some(&listed.ephemeral_id)
    {
        wrong.push(format!("S7: {node} takes a slot and its process is not written down"));
    }
    if let Some(wanted) = facts.pod(&member.pod_uid).and_then(Input::wanted_config)
        && member.expected.as_ref() != Some(&wanted)
    {
        wrong.push(format!("S3: {node} takes a slot for {:?}, not {wanted}", member.expected));
    }
}

/// Whether it is kept stopped, or not started again yet.
fn is_kept_stopped(facts: &Input, member: &Member) -> bool {
    let answered = |sequence| {
        facts.manager(&member.pod_uid).is_some_and(|manager| manager.sequence >= sequence)
    };
    facts
        .kept_stopped(&member.pod_uid)
        .is_some_and(|entry| !entry.releasing || !answered(entry.sequence))
}

fn finished(
    facts: &Input,
    ledger: &Ledger,
    old: &Member,
    member: &Member,
    wrong: &mut Vec<String>,
) {
    let outcome = member.ending.as_ref().map_or(Outcome::Done, |ending| ending.outcome);
    if outcome == Outcome::Done {
        if let Err(why) = facts.check_proven(old) {
            wrong.push(format!("S3: {why}"));
        }
        updates::done(facts, old, wrong);
    } else if member.ending.as_ref().is_some_and(|ending| ending.reason.trim().is_empty()) {
        wrong.push(format!("{} ends as {} without a reason", member.node, outcome.as_str()));
    }
    if !is_started_or_owed(facts, old, ledger) {
        wrong.push(format!("S8: {} is finished and was not started", member.node));
    }
}

/// Whether each stop of ours for a finished member was followed by an accepted start, or the start
/// is a debt.
pub(super) fn is_started_or_owed(facts: &Input, member: &Member, new: &Ledger) -> bool {
    if facts.was_proven(member) {
        return true;
    }
    let owed = new.debts.start.iter().any(|debt| debt.pod_uid == member.pod_uid);
    let is_kept = new.kept_stopped.iter().any(|entry| entry.pod_uid == member.pod_uid);
    let sequence = member
        .compensation
        .as_ref()
        .map_or(member.start_sequence, |compensation| compensation.start_sequence);
    // The start of another client has the sequence of our stop: the manager refuses that stop.
    let pre_empted = facts.manager(&member.pod_uid).is_some_and(|manager| {
        manager.last_request.as_ref().is_some_and(|last| {
            (last.sequence == member.stop_sequence && last.kind == RequestKind::Start)
                // Started by another client, after our stop was accepted.
                || (last.sequence > member.stop_sequence
                    && last.accepted
                    && last.kind == RequestKind::Start)
                // Stopped by another client, with a sequence that is none of ours: it is to be
                // stopped.
                || (last.sequence != member.stop_sequence
                    && last.sequence < member.start_sequence
                    && last.sequence + 1 >= member.stop_sequence
                    && last.kind == RequestKind::Stop)
        })
    });
    owed || is_kept
        || pre_empted
        || facts.pod(&member.pod_uid).is_none()
        || facts.is_started(&member.pod_uid, sequence)
}
