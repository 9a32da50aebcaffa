//! Restarts whose nodes go together: a zone as a whole, and a coordinated restart.

use std::collections::BTreeSet;

use super::working_copy::WorkingCopy;
use super::{
    ForecastStep, ForecastStepKind, ForecastTime, ledger_after, plan_without_patches, step_of, uids,
};
use crate::{Member, MemberStep, Policy, Restart, Strategy, Waiting, annotation};

/// Adds the steps, and returns the nodes that are never restarted.
pub(super) fn add_joint_step(
    working_copy: &mut WorkingCopy,
    policy: &Policy,
    is_now: bool,
    steps: &mut Vec<ForecastStep>,
) -> Vec<Waiting> {
    remove_cluster_blockers(working_copy);
    let plan = plan_without_patches(&working_copy.snapshot, policy);
    let after = ledger_after(&plan.actions, &working_copy.snapshot.ledger);
    let begun = uids(after, Member::is_under_way);
    if begun.is_empty() {
        let scheduled = uids(after, |member| member.step == MemberStep::Scheduled);
        let waiting = plan.waiting.into_iter();
        return waiting
            .filter(|one| one.pod.as_ref().is_some_and(|uid| scheduled.contains(uid)))
            .collect();
    }
    let when = if is_now { ForecastTime::Now } else { ForecastTime::Later };
    let Some(restart) = &after.restart else { return Vec::new() };
    if restart.request.strategy == Strategy::Coordinated {
        add_coordinated_steps(restart, when, steps);
    } else {
        let zone = restart.request.target.zone.as_deref().unwrap_or_default();
        let message = format!("the nodes of zone {zone} go together");
        let kind = ForecastStepKind::Restart;
        steps.push(step_of(kind, when, &restart.members, &begun, &message));
    }
    Vec::new()
}

/// Removes the reasons that block every restart of the cluster.
fn remove_cluster_blockers(working_copy: &mut WorkingCopy) {
    let cluster = &mut working_copy.snapshot.cluster;
    cluster.paused = false;
    cluster.closed_until = None;
    cluster.annotations.retain(|key, _| !annotation::is_gate(key));
    cluster.overlaps.clear();
    if let Some(restart) = &mut working_copy.snapshot.ledger.restart {
        restart.request.not_before = None;
        restart.request.deadline = None;
    }
}

/// Adds the steps that are left: all nodes are stopped, then all are started.
pub(super) fn add_coordinated_steps(
    restart: &Restart,
    when: ForecastTime,
    steps: &mut Vec<ForecastStep>,
) {
    let all: BTreeSet<String> = unfinished(restart, |_| true);
    let members = &restart.members;
    if members.iter().any(|member| member.step == MemberStep::Aborting) {
        let message = "it is being brought back";
        return steps.push(step_of(ForecastStepKind::Start, when, members, &all, message));
    }
    let mut start_time = when;
    if restart.frozen.is_none() {
        let message = "every node is stopped before any is started";
        steps.push(step_of(ForecastStepKind::Stop, when, members, &all, message));
        start_time = ForecastTime::Later;
    }
    let masters = unfinished(restart, |member| member.master_eligible);
    let others = unfinished(restart, |member| !member.master_eligible);
    if !masters.is_empty() {
        let message = "it is master-eligible: those are started first";
        steps.push(step_of(ForecastStepKind::Start, start_time, members, &masters, message));
    }
    if !others.is_empty() {
        let message = "it is started after the master-eligible nodes";
        steps.push(step_of(ForecastStepKind::Start, start_time, members, &others, message));
    }
}

/// Uids of the pods of members that are not finished.
fn unfinished(restart: &Restart, which: impl Fn(&Member) -> bool) -> BTreeSet<String> {
    let members = restart.members.iter().filter(|member| member.step != MemberStep::Finished);
    members.filter(|member| which(member)).map(|member| member.pod_uid.clone()).collect()
}
