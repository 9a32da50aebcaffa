//! Restarts whose nodes go as one: a zone at once, and a coordinated one.

use std::collections::BTreeSet;

use super::scene::Scene;
use super::{Stage, StageKind, When, decided, ledger_after, stage, uids};
use crate::{Member, Policy, Restart, Step, Strategy, Waiting};

/// Adds the steps, and answers for the nodes that never go.
pub(super) fn together(
    scene: &mut Scene,
    policy: &Policy,
    is_now: bool,
    steps: &mut Vec<Stage>,
) -> Vec<Waiting> {
    lift(scene);
    let made = decided(&scene.snapshot, policy);
    let after = ledger_after(&made.actions, &scene.snapshot.ledger);
    let begun = uids(after, Member::is_under_way);
    if begun.is_empty() {
        let open = uids(after, |member| member.step == Step::Scheduled);
        let waiting = made.waiting.into_iter();
        return waiting
            .filter(|one| one.pod.as_ref().is_some_and(|uid| open.contains(uid)))
            .collect();
    }
    let when = if is_now { When::Now } else { When::Later };
    let Some(restart) = &after.restart else { return Vec::new() };
    if restart.request.strategy == Strategy::Coordinated {
        coordinated(restart, when, steps);
    } else {
        let zone = restart.request.target.zone.as_deref().unwrap_or_default();
        let why = format!("zone {zone} goes as a whole");
        steps.push(stage(StageKind::Restart, when, &restart.members, &begun, &why));
    }
    Vec::new()
}

/// Takes away what keeps every restart from going, whatever it asks for.
fn lift(scene: &mut Scene) {
    let cluster = &mut scene.snapshot.cluster;
    cluster.paused = false;
    cluster.overlaps.clear();
    if let Some(restart) = &mut scene.snapshot.ledger.restart {
        restart.request.not_before = None;
        restart.request.deadline = None;
    }
}

/// All stopped, then all started.
pub(super) fn coordinated(restart: &Restart, when: When, steps: &mut Vec<Stage>) {
    let all: BTreeSet<String> = open(restart, |_| true);
    let members = &restart.members;
    if members.iter().any(|member| member.step == Step::Aborting) {
        let why = "it is being brought back";
        return steps.push(stage(StageKind::Start, when, members, &all, why));
    }
    let mut then = when;
    if restart.frozen.is_none() {
        let why = "every node is stopped before any is started";
        steps.push(stage(StageKind::Stop, when, members, &all, why));
        then = When::Later;
    }
    let masters = open(restart, |member| member.master_eligible);
    let others = open(restart, |member| !member.master_eligible);
    if !masters.is_empty() {
        let why = "it can be elected: those are started first";
        steps.push(stage(StageKind::Start, then, members, &masters, why));
    }
    if !others.is_empty() {
        let why = "it is started once those that can be elected were told to";
        steps.push(stage(StageKind::Start, then, members, &others, why));
    }
}

/// Uids of the members that are not over.
fn open(restart: &Restart, which: impl Fn(&Member) -> bool) -> BTreeSet<String> {
    let members = restart.members.iter().filter(|member| member.step != Step::Finished);
    members.filter(|member| which(member)).map(|member| member.pod_uid.clone()).collect()
}
