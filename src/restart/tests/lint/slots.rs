//! No node keeps its slot while it cannot be stopped, and what we have changed for it stays in force.

use super::facts::Input;
use super::outages;
use crate::{Action, Color, Direction, Member, MemberStep, Plan, Predicate, Restart, Strategy};

pub(super) fn check(facts: &Input, plan: &Plan, wrong: &mut Vec<String>) {
    // The step of a member may come after a change of the ledger that something else needs.
    if matches!(plan.actions.first(), Some(Action::WriteLedger(_))) {
        return;
    }
    let Some(restart) = facts.restart() else { return };
    forward(facts, plan, restart, wrong);
    silent(facts, plan, restart, wrong);
    if restart.ending.is_some() {
        return;
    }
    if restart.request.strategy == Strategy::Coordinated {
        return coordinated(facts, restart, wrong);
    }
    for member in restart.members.iter().filter(|one| one.step == MemberStep::Restarting) {
        let was_stopped = match facts.manager(&member.pod_uid) {
            Some(manager) => manager.sequence >= member.stop_sequence,
            // A stop may have arrived; but its engine has not ended yet.
            None => !facts.lists_old_process(member),
        };
        if was_stopped {
            continue;
        }
        let node = &member.node;
        if facts.snapshot.cluster.paused {
            wrong.push(format!("S9: {node} keeps its slot while paused"));
        }
        if is_tight_for(facts, member)
            && let Some(no) = why_not(facts, restart, member)
        {
            wrong.push(format!("L5: {node} keeps its slot and allocation, and {no}"));
        }
    }
}

/// While paused, either a node was stopped, or may have been, or all wait. Once the checksums are frozen one was: its
/// pod may have been replaced since.
fn coordinated(facts: &Input, restart: &Restart, wrong: &mut Vec<String>) {
    let mut slots =
        restart.members.iter().filter(|one| one.step == MemberStep::Restarting).peekable();
    let is_open = restart.direction == Direction::Open && restart.frozen.is_none();
    if facts.snapshot.cluster.paused
        && is_open
        && slots.peek().is_some()
        && restart.members.iter().all(|member| {
            let waits = member.step == MemberStep::Restarting && !facts.may_be_stopped(member);
            waits || member.step == MemberStep::Finished
        })
    {
        wrong.push("S9: all keep their slots while paused".into());
    }
}

/// A coordinated restart that only goes forward has no end while a node is not back: allocation is
/// limited for a phase, and then set back.
fn forward(facts: &Input, plan: &Plan, restart: &Restart, wrong: &mut Vec<String>) {
    if !facts.is_late_forward(restart)
        || plan.actions.iter().any(|one| matches!(one, Action::RestoreAllocation { .. }))
    {
        return;
    }
    let held = restart.members.iter().find(|one| one.is_under_way() && is_tight_for(facts, one));
    if let Some(member) = held {
        wrong
            .push(format!("L5: allocation is limited for {} for longer than a phase", member.node));
    }
}

/// Allocation is limited for no longer than a phase for nodes whose managers do not answer.
fn silent(facts: &Input, plan: &Plan, restart: &Restart, wrong: &mut Vec<String>) {
    let held =
        || restart.members.iter().filter(|one| one.is_under_way() && is_tight_for(facts, one));
    let mut all = held().peekable();
    let is_restored =
        plan.actions.iter().any(|one| matches!(one, Action::RestoreAllocation { .. }));
    let has_own_bound = restart.direction == Direction::Forward;
    if is_restored || has_own_bound || all.peek().is_none() || !facts.is_own_engine() {
        return;
    }
    if all.all(|member| facts.is_silent_for_long(member)) {
        let names: Vec<&str> = held().map(|member| member.node.as_str()).collect();
        wrong.push(format!("L5: allocation stays limited for {names:?}, which do not answer"));
    }
}

/// Whether allocation is limited by us, for this member too.
fn is_tight_for(facts: &Input, member: &Member) -> bool {
    let owed = facts.snapshot.ledger.debts.allocation.as_ref();
    let seen = facts.engine().and_then(|engine| engine.allocation.as_ref().ok());
    owed.is_some_and(|debt| debt.holders.contains(&member.pod_uid))
        && seen.is_some_and(|seen| seen.marker.is_some())
}

/// Why the node may not be stopped now although allocation would change that.
fn why_not(facts: &Input, restart: &Restart, member: &Member) -> Option<String> {
    let pod = facts.pod(&member.pod_uid)?;
    let engine = facts.engine()?;
    let health = engine.health.as_ref().ok()?;
    if health.unassigned == 0 || facts.whole_set_failed(pod) {
        // Copies that have a node become ready under every setting.
        return None;
    }
    let disabled = |predicate| facts.is_disabled(predicate);
    // What is not known is no reason to give a slot back.
    if engine.shards.is_ok()
        && !facts.policy.allow_outage
        && !restart.request.allow_outage
        && !disabled(Predicate::StartedReplica)
        && let Some(shard) =
            outages::copy_lost(engine, &pod.node, &facts.down_by_us(), Some(&restart.request))
    {
        return Some(format!("it has the last copy of {shard}"));
    }
    if !facts.serves(pod) {
        return None;
    }
    if restart.request.strategy != Strategy::Rolling {
        return None;
    }
    if health.color == Color::Red && !disabled(Predicate::GreenOrYellow) {
        return Some("the cluster is red".into());
    }
    let others = restart.members.iter().filter(|one| one.is_under_way()).count();
    let missed = if others > 1 { 0 } else { health.delayed };
    let unsettled = health.initializing + health.relocating + missed + health.in_flight_fetch;
    let is_alone = engine.nodes.len() == 1 && facts.snapshot.pods.len() == 1;
    let asks = !is_alone && !disabled(Predicate::Yellow);
    (asks && unsettled > 0).then(|| "the cluster is not settled".into())
}
