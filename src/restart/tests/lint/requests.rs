//! Stop and start requests: never without a ledger entry, never against the rules.

use super::facts::Input;
use super::{outages, votes};
use crate::{
    Action, Color, Direction, Manager, Member, MemberStep, Plan, Pod, Predicate, Request, Restart,
    Resume, Sources, StartDebt, Strategy,
};
use stayput_api::{ConfigChoice, RequestKind, State};

/// Where the sequence of a stop comes from.
enum Cause<'a> {
    Turn(&'a Member),
    Compensation,
    KeptStopped,
    Debt(&'a StartDebt),
}

pub(super) fn stop(facts: &Input, plan: &Plan, uid: &str, sequence: u64, wrong: &mut Vec<String>) {
    let Some(cause) = cause_of_stop(facts, uid, sequence) else {
        wrong.push(format!("S6: stop {sequence} of {uid} is not in the ledger"));
        return;
    };
    let Some(pod) = facts.pod(uid) else {
        wrong.push(format!("a stop of {uid}, which is no pod of this snapshot"));
        return;
    };
    let name = &pod.name;
    let again = |action: &&Action| {
        matches!(action, Action::Stop { uid: other, .. } | Action::Start { uid: other, .. }
            if other == uid)
    };
    if plan.actions.iter().filter(again).count() != 1 {
        wrong.push(format!("S5: {name} gets two requests in one plan"));
    }
    let Some(manager) = facts.manager(uid) else {
        wrong.push(format!("a stop of {name}, whose manager is not known"));
        return;
    };
    if manager.sequence > sequence {
        wrong.push(format!("S5: stop {sequence} of {name} is below {}", manager.sequence));
    }
    if manager.sequence == sequence
        && manager.last_request.as_ref().is_some_and(|last| last.accepted)
    {
        wrong.push(format!("S5: stop {sequence} of {name} is already accepted"));
    }
    match cause {
        Cause::Compensation => {}
        Cause::Debt(debt) => {
            let has_failed = matches!(manager.state, State::Failed | State::Backoff);
            if !has_failed || debt.update.is_none() {
                wrong.push(format!("S9: {name} is stopped for a debt and has not failed"));
            }
        }
        Cause::KeptStopped => {
            check_allowed(facts, name, wrong);
            not_deleted(facts, name, wrong);
            check_pod(pod, manager, wrong);
            // A stopped engine costs nothing: the request only keeps it stopped.
            if manager.state != State::Stopped {
                check_outage(facts, pod, None, wrong);
            }
        }
        Cause::Turn(member) => stop_of_turn(facts, pod, manager, member, wrong),
    }
}

/// A node that is lost with us comes back by itself: in a coordinated restart on the config that it goes
/// to or not at all, otherwise on whatever its manager can start it on.
pub(super) fn resume(
    facts: &Input,
    uid: &str,
    sequence: u64,
    resume: Option<&Resume>,
    wrong: &mut Vec<String>,
) {
    let wanted = match cause_of_stop(facts, uid, sequence) {
        Some(Cause::Turn(member)) => {
            let restart = facts.restart();
            let is_coordinated =
                restart.is_some_and(|one| one.request.strategy == Strategy::Coordinated);
            Some(member.expected.clone().filter(|_| is_coordinated))
        }
        Some(Cause::Compensation) => {
            let back = facts.member(uid).and_then(|member| member.compensation.as_ref());
            let manager = facts.manager(uid);
            back.map(|back| match back.config {
                ConfigChoice::LastGood => manager.and_then(|manager| manager.last_good.clone()),
                ConfigChoice::Mounted => None,
            })
        }
        Some(Cause::Debt(debt)) => Some(match debt.config {
            ConfigChoice::LastGood => {
                facts.manager(uid).and_then(|manager| manager.last_good.clone())
            }
            ConfigChoice::Mounted => None,
        }),
        Some(Cause::KeptStopped) | None => None,
    };
    let given = resume.map(|resume| resume.checksum.clone());
    if given != wanted {
        wrong.push(format!("stop {sequence} of {uid} resumes on {given:?}, not on {wanted:?}"));
    }
}

fn cause_of_stop<'a>(facts: &Input<'a>, uid: &str, sequence: u64) -> Option<Cause<'a>> {
    if let Some(member) = facts.member(uid) {
        if member.step == MemberStep::Restarting
            && member.stop_sequence == sequence
            && member.start_sequence > sequence
        {
            return Some(Cause::Turn(member));
        }
        let back = member.compensation.as_ref().and_then(|compensation| compensation.stop_sequence);
        if member.step == MemberStep::Aborting && back == Some(sequence) {
            return Some(Cause::Compensation);
        }
    }
    let entry =
        facts.kept_stopped(uid).filter(|entry| !entry.releasing && entry.sequence == sequence);
    if entry.is_some() {
        return Some(Cause::KeptStopped);
    }
    let debt = facts.start_debt(uid).filter(|debt| debt.stop_sequence == Some(sequence));
    debt.map(Cause::Debt)
}

/// Conditions that forbid every new stop.
fn check_allowed(facts: &Input, name: &str, wrong: &mut Vec<String>) {
    let cluster = &facts.snapshot.cluster;
    let debts = &facts.snapshot.ledger.debts;
    // A restart that only goes forward does not wait for nodes that are gone or silent.
    let forward = facts.restart().is_some_and(|one| one.direction == Direction::Forward);
    let is_waited_for = |debt: &StartDebt| {
        // That of a node kept stopped itself is paid once it is stopped.
        debt.node != name && !forward && facts.is_start_waited_for(debt)
    };
    for (is_so, what) in [
        (cluster.paused, "S9: while paused"),
        (!cluster.overlaps.is_empty(), "while another SearchCluster selects the same pods"),
        (debts.start.iter().any(is_waited_for), "while a start is owed"),
        (
            votes::is_exclusion_unowned(facts) && !votes::is_removed_later(facts, name),
            "while a voting exclusion is owed by no node under way",
        ),
    ] {
        if is_so {
            wrong.push(format!("{name} is stopped {what}"));
        }
    }
    if let (Some(known), Some(engine)) = (&facts.snapshot.ledger.cluster_uuid, facts.engine())
        && known != &engine.cluster_uuid
    {
        wrong.push(format!("{name} is stopped and another cluster answers"));
    }
}

fn not_deleted(facts: &Input, name: &str, wrong: &mut Vec<String>) {
    if facts.snapshot.cluster.deleting {
        wrong.push(format!("{name} is stopped while the SearchCluster is deleted"));
    }
}

/// Conditions that forbid the stop of a pod.
fn check_pod(pod: &Pod, manager: &Manager, wrong: &mut Vec<String>) {
    let busy = matches!(manager.state, State::Stopping | State::Killing | State::Stuck);
    for (is_so, what) in [
        (pod.terminating, "is being deleted"),
        (pod.outdated.is_some(), "will be replaced by its owner"),
        (pod.leaving.is_some(), "leaves the cluster"),
        (pod.deadly_probe.is_some(), "would be killed by a probe"),
        (manager.live_mismatch.is_some(), "has other live globs"),
        (!manager.durable, "has a journal that would not survive a crash"),
        (busy, "cannot be stopped now"),
    ] {
        if is_so {
            wrong.push(format!("{} is stopped, though it {what}", pod.name));
        }
    }
}

fn stop_of_turn(
    facts: &Input,
    pod: &Pod,
    manager: &Manager,
    member: &Member,
    wrong: &mut Vec<String>,
) {
    let name = &pod.name;
    check_allowed(facts, name, wrong);
    check_pod(pod, manager, wrong);
    let Some(restart) = facts.restart() else { return };
    // A restart that only goes forward has stopped nodes, which only its end starts again.
    let forward = restart.direction == Direction::Forward;
    if !forward {
        not_deleted(facts, name, wrong);
    }
    if restart.ending.is_some() && !forward {
        wrong.push(format!("S9: {name} is stopped, though the restart is ending"));
    }
    if restart.direction == Direction::Back {
        wrong.push(format!("{name} is stopped, though the restart has turned back"));
    }
    if restart.request.not_before.is_some_and(|moment| facts.snapshot.now < moment) {
        wrong.push(format!("{name} is stopped before the moment asked for"));
    }
    if facts.snapshot.cluster.closed_until.is_some()
        && !restart.request.outside_windows
        && restart.request.strategy != Strategy::Coordinated
    {
        wrong.push(format!("{name} is stopped outside of the maintenance windows"));
    }
    if restart.request.strategy != Strategy::Coordinated
        && let Some(gate) = facts.closed_gate(&restart.request.id)
    {
        wrong.push(format!("{name} is stopped while {gate} is closed"));
    }
    if restart.request.strategy == Strategy::Rolling
        && facts.is_being_read(pod)
        && !facts.is_disabled(Predicate::RunningSnapshot)
    {
        wrong.push(format!("{name} is stopped while a snapshot is taken of its shards"));
    }
    let from = restart.started.max(restart.request.not_before.unwrap_or(restart.started));
    if let Some(span) = &restart.request.deadline
        && !forward
        && facts.snapshot.now.since(from) > span.0
    {
        wrong.push(format!("{name} is stopped after the restart's deadline"));
    }
    if facts.kept_stopped(&pod.uid).is_some() {
        wrong.push(format!("{name} is kept stopped and gets a turn"));
    }
    if matches!(pod.sources, Sources::Absent(_)) {
        wrong.push(format!("{name} is stopped, though a source is absent"));
    }
    let declared = matches!(pod.sources, Sources::Checksum(_));
    // Once frozen, the entry counts; later changes of the sources are for the next restart.
    let wanted = match restart.frozen {
        Some(_) => member.expected.clone(),
        None => Input::wanted_config(pod),
    };
    if declared && (manager.mounted.is_none() || manager.mounted != wanted) {
        wrong.push(format!("{name} is stopped before its config is mounted"));
    }
    if declared && manager.mounted != member.expected {
        wrong.push(format!("S3: {name} is stopped and its entry expects {:?}", member.expected));
    }
    let under_way = Input::taken_down(restart.members.iter());
    match restart.request.strategy {
        Strategy::Coordinated => {
            if !restart.once.allocation || !restart.once.flush {
                wrong.push(format!("{name} is stopped before allocation and flush were entered"));
            }
            if restart.members.iter().any(|other| other.step == MemberStep::Scheduled) {
                wrong.push(format!("{name} is stopped before every member has its sequences"));
            }
        }
        Strategy::Rolling | Strategy::Immediate => {
            let zone = restart.request.strategy == Strategy::Rolling
                && restart.request.target.zone.is_some();
            if under_way > facts.budget() && !zone {
                wrong.push(format!("S1: {name} is stopped and {under_way} are under way"));
            }
            check_outage(facts, pod, Some(&restart.request), wrong);
            check_silent(facts, pod, under_way, wrong);
        }
    }
    if restart.request.strategy == Strategy::Rolling {
        check_config(facts, pod, wrong);
        check_health(facts, pod, wrong);
    }
}

/// A node that hangs is not stopped, and counts as down for all others.
fn check_silent(facts: &Input, pod: &Pod, under_way: usize, wrong: &mut Vec<String>) {
    let name = &pod.name;
    if facts.silent().any(|node| node == pod.node) {
        wrong.push(format!("{name} is stopped before it has said what it is"));
    }
    let members = facts.restart().map(|restart| &restart.members[..]).unwrap_or_default();
    let is_counted = |node: &&str| {
        let member = members.iter().find(|member| member.node == *node);
        let kept = &facts.snapshot.ledger.kept_stopped;
        member.is_none_or(|member| !member.is_under_way())
            && facts.snapshot.pods.iter().any(|pod| pod.node == *node)
            && kept.iter().all(|entry| entry.node != *node)
    };
    let silent = facts.silent().filter(is_counted).count();
    let is_zone = facts.restart().is_some_and(|restart| restart.request.goes_as_a_whole());
    let is_limited = !is_zone && !facts.is_disabled(Predicate::MaxUnavailable);
    if facts.serves(pod) && silent > 0 && is_limited && under_way + silent > facts.budget() {
        wrong.push(format!("S1: {name} is stopped while {silent} nodes hang"));
    }
}

/// S2 and S10, computed independently. A stop that is no part of a `request` has no consent of one.
fn check_outage(facts: &Input, pod: &Pod, request: Option<&Request>, wrong: &mut Vec<String>) {
    if facts.policy.allow_outage || request.is_some_and(|request| request.allow_outage) {
        return;
    }
    let Some(engine) = facts.engine() else {
        if !facts.whole_set_failed(pod) {
            wrong.push(format!("{} is stopped and the engine cannot be asked", pod.name));
        }
        return;
    };
    let mut down = facts.down_by_us();
    down.extend(facts.silent().map(str::to_owned));
    let deleted = facts.snapshot.pods.iter().filter(|pod| pod.terminating);
    down.extend(deleted.map(|pod| pod.node.clone()));
    if let Some(what) = outages::quorum_lost(engine, &pod.node, &down) {
        wrong.push(format!("S2: the stop of {} costs the quorum: {what}", pod.name));
    }
    if let Some(what) = votes::taken_away(facts, engine, &pod.node) {
        wrong.push(format!("S2: the stop of {} costs the quorum: {what}", pod.name));
    }
    if let Some(what) = outages::copy_lost(engine, &pod.node, &down, request) {
        wrong.push(format!("S10: the stop of {} costs the last copy: {what}", pod.name));
    }
}

fn check_health(facts: &Input, pod: &Pod, wrong: &mut Vec<String>) {
    let is_in = facts.serves(pod);
    let Some(health) = facts.engine().and_then(|engine| engine.health.as_ref().ok()) else {
        if is_in {
            wrong.push(format!("{} is healthy and stopped on unknown health", pod.name));
        }
        return;
    };
    // Copies that are missing because another node of the batch is down are expected.
    let members = facts.restart().into_iter().flat_map(|restart| &restart.members);
    let others = members.filter(|other| other.is_under_way() && other.node != pod.node).count();
    let missed = if others > 0 { 0 } else { health.delayed };
    let settled = health.color == Color::Yellow
        && health.initializing + health.relocating + missed + health.in_flight_fetch == 0;
    // A cluster of one node is never better than yellow.
    let is_alone = facts.snapshot.pods.len() == 1
        && facts.engine().is_some_and(|engine| engine.nodes.len() == 1)
        && health.color == Color::Yellow;
    let is_skipped = health.color == Color::Red && facts.is_disabled(Predicate::GreenOrYellow);
    if is_in && health.color != Color::Green && !settled && !is_alone && !is_skipped {
        wrong.push(format!("{} is healthy and stopped while {:?}", pod.name, health));
    }
}

/// One start.
pub(super) struct Start<'a> {
    pub(super) uid: &'a str,
    pub(super) sequence: u64,
    pub(super) checksum: &'a Option<String>,
    pub(super) config: ConfigChoice,
}

pub(super) fn start(facts: &Input, asked: &Start, wrong: &mut Vec<String>) {
    let Some(pod) = facts.pod(asked.uid) else {
        wrong.push(format!("a start of {}, which is no pod of this snapshot", asked.uid));
        return;
    };
    let name = &pod.name;
    let sequence = asked.sequence;
    if let Some(manager) = facts.manager(asked.uid)
        && manager.sequence > sequence
    {
        wrong.push(format!("S5: start {sequence} of {name} is below {}", manager.sequence));
    }
    if facts.kept_stopped(asked.uid).is_some_and(|entry| !entry.releasing) {
        wrong.push(format!("{name} is kept stopped and started"));
    }
    if let Some(member) = facts.member(asked.uid) {
        if member.step == MemberStep::GivingBack && member.start_sequence == sequence {
            // It makes the manager refuse the stop. Nothing is started on another config by it.
            if asked.config != ConfigChoice::Mounted || asked.checksum != &member.expected {
                wrong.push(format!("S3: {name} would be started on something else than expected"));
            }
            return;
        }
        if member.step == MemberStep::Restarting && member.start_sequence == sequence {
            return start_of_turn(facts, pod, member, asked, wrong);
        }
        if member.step == MemberStep::Aborting
            && let Some(back) = &member.compensation
            && back.start_sequence == sequence
        {
            if back.config != asked.config {
                wrong.push(format!("{name} is brought back on another config than journaled"));
            }
            let known = facts.manager(asked.uid);
            if let (Some(stop), Some(manager)) = (back.stop_sequence, known)
                && manager.sequence < stop
            {
                wrong.push(format!("{name} is brought back before its stop was taken"));
            }
            return;
        }
    }
    let owed = facts
        .start_debt(asked.uid)
        .is_some_and(|debt| debt.sequence == sequence && debt.config == asked.config);
    let lifted = facts.kept_stopped(asked.uid).is_some_and(|entry| {
        let (config, checksum) = (entry.config, &entry.checksum);
        let is_its =
            entry.sequence == sequence && (config, checksum) == (asked.config, asked.checksum);
        entry.releasing && is_its
    });
    if !owed && !lifted {
        wrong.push(format!("S6: start {sequence} of {name} is not in the ledger"));
    }
}

fn start_of_turn(
    facts: &Input,
    pod: &Pod,
    member: &Member,
    asked: &Start,
    wrong: &mut Vec<String>,
) {
    let name = &pod.name;
    if asked.config != ConfigChoice::Mounted || asked.checksum != &member.expected {
        wrong.push(format!("S3: {name} is started on something else than expected"));
    }
    // It came back by itself while nobody could ask it. Then the start only ends its waiting.
    let run = facts.manager(&pod.uid).and_then(|manager| manager.run.as_ref());
    let runs_it =
        member.expected.is_some() && run.is_some_and(|run| run.checksum == member.expected);
    if let Some(why) = super::updates::why_not_carried_out(pod, member).filter(|_| !runs_it) {
        wrong.push(format!("{name} is started before its pod is as it is wanted: {why}"));
    }
    match facts.manager(&pod.uid) {
        None => wrong.push(format!("{name} is started and its manager is not known")),
        Some(manager) => {
            let stopped = manager.sequence > member.stop_sequence
                || manager.last_request.as_ref().is_some_and(|last| {
                    last.sequence == member.stop_sequence
                        && last.kind == RequestKind::Stop
                        && last.accepted
                });
            let needs_none = runs_it && is_new_and_held(facts, member);
            if !stopped && !needs_none {
                wrong.push(format!("{name} is started before its stop was taken"));
            }
            if member.expected.is_some() && manager.mounted != member.expected && !runs_it {
                wrong.push(format!("S3: {name} is started and {:?} is mounted", manager.mounted));
            }
        }
    }
    let Some(restart) = facts.restart() else { return };
    if restart.request.strategy == Strategy::Coordinated {
        if restart.frozen.is_none() {
            wrong.push(format!("{name} is started before the checksums are frozen"));
        }
        if restart.direction == Direction::Back {
            wrong.push(format!("S11: {name} is started forward, though all members turn back"));
        }
    } else if let Sources::Checksum(now) = &pod.sources
        && Some(now) != member.expected.as_ref()
        && !runs_it
    {
        wrong.push(format!("S3: {name} is started and its sources have moved to {now}"));
    }
}

/// Whether nothing may be stopped (S9) while all nodes of a coordinated restart are being started. The
/// pod of this one was replaced then, and its engine already runs on what it is to be started on: the
/// start only shows that.
fn is_new_and_held(facts: &Input, member: &Member) -> bool {
    let held = |restart: &Restart| {
        restart.request.strategy == Strategy::Coordinated
            && restart.frozen.is_some()
            && (facts.snapshot.cluster.paused || restart.ending.is_some())
    };
    let is_new = facts
        .node(&member.node)
        .is_none_or(|node| Some(&node.ephemeral_id) != member.ephemeral_id.as_ref());
    is_new && facts.restart().is_some_and(held)
}

/// A rolling restart may not take a node to where the others are not.
fn check_config(facts: &Input, pod: &Pod, wrong: &mut Vec<String>) {
    let Sources::Checksum(checksum) = &pod.sources else { return };
    let (seen, remembered) = (&facts.snapshot.configs, &facts.snapshot.ledger.configs);
    let find = |checksum: &String| seen.of(checksum).or_else(|| remembered.of(checksum));
    let name = |settings: &crate::Settings| settings.get("cluster.name").cloned();
    let runs_on = |pod: &Pod| {
        let run = pod.manager.as_ref().ok()?.run.as_ref()?;
        find(run.checksum.as_ref()?).and_then(name)
    };
    let (Some(from), Some(to)) = (runs_on(pod), find(checksum).and_then(name)) else { return };
    let stays = |other: &&Pod| other.uid != pod.uid && runs_on(other).as_ref() == Some(&from);
    if from != to
        && facts.engine().is_some()
        && facts.snapshot.pods.iter().any(|other| stays(&other))
    {
        wrong.push(format!("{} is stopped for a config that needs all nodes at once", pod.name));
    }
}
