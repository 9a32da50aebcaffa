//! Changes of pods: each only in its place.

use std::collections::BTreeMap;

use super::facts::Input;
use super::labels::{ahead, back};
use super::ledger_writes::should_be_stopped;
use crate::annotation::{ACTUAL_REVISION, ENVIRONMENT};
use crate::{
    Change, LivePod, Member, MemberStep, MemberUpdate, Pod, PodPatch, PodUpdate, Restart,
    UpdateStep,
};
use stayput_api::checksum::ContentDigest;
use stayput_api::{Desired, State};

const REVISION: &str = "controller-revision-hash";

/// What of a pod a patch changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Images,
    Resources,
}

impl Field {
    fn of(self, patch: &PodPatch) -> &BTreeMap<String, Change> {
        match self {
            Self::Images => &patch.images,
            Self::Resources => &patch.resources,
        }
    }

    fn live(self, live: &LivePod) -> &BTreeMap<String, String> {
        match self {
            Self::Images => &live.images,
            Self::Resources => &live.resources,
        }
    }
}

/// Images or sizes, of whichever container: of a pod whose engine is stopped, or whose container does not run.
pub(super) fn patch(
    facts: &Input,
    uid: &str,
    changes: &BTreeMap<String, Change>,
    field: Field,
    wrong: &mut Vec<String>,
) {
    let Some((pod, live)) = living(facts, uid, wrong) else { return };
    let name = &pod.name;
    for (container, change) in changes {
        if field.live(live).get(container) != change.seen.as_ref() {
            wrong.push(format!("{name}: {container} was not seen as {:?}", change.seen));
        }
        if change.seen == change.wanted || change.wanted.is_none() {
            wrong.push(format!("{name}: {container} is changed to nothing else"));
        }
    }
    let goes_to = |wanted: &dyn Fn(&Change) -> Option<String>, all: &BTreeMap<String, Change>| {
        changes.iter().all(|(container, change)| {
            all.get(container).is_some_and(|known| wanted(known) == change.wanted)
        })
    };
    let forward = |change: &Change| change.wanted.clone();
    let back = |change: &Change| change.seen.clone();
    let member = facts.member(uid).filter(|member| member.is_under_way());
    let fixed = member.and_then(|member| member.update.as_ref());
    let owed = facts.start_debt(uid).and_then(|debt| debt.update.as_ref());
    // The images of other containers are set back whatever the engine does.
    let is_beside = field == Field::Images
        && pod.container.as_ref().is_some_and(|engine| !changes.contains_key(engine));
    match (member, fixed) {
        (Some(member), Some(fixed)) if member.step == MemberStep::Restarting => {
            if !is_stopped_by(facts, uid, member.stop_sequence) {
                wrong.push(format!("S12: {name} is changed before it is stopped"));
            }
            if !goes_to(&forward, field.of(&fixed.update.patch)) {
                wrong.push(format!("S12: {name} is changed to what its entry does not have"));
            }
            if field == Field::Resources && fixed.update.step != UpdateStep::Resize {
                wrong.push(format!("S12: {name} is resized on the step {:?}", fixed.update.step));
            }
        }
        (Some(member), Some(fixed)) if member.step == MemberStep::Aborting => {
            if !is_beside {
                is_down(facts, pod, live, wrong);
            }
            if !goes_to(&back, field.of(&fixed.update.patch)) {
                wrong.push(format!("S12: {name} is not set back to what it was"));
            }
        }
        (Some(member), _) => {
            wrong.push(format!("S12: {name} is {:?} and is changed", member.step));
        }
        (None, _) if owed.is_some_and(|one| goes_to(&back, field.of(&one.update.patch))) => {
            if !is_beside {
                is_down(facts, pod, live, wrong);
            }
        }
        (None, _)
            if repair(facts, pod).is_some_and(|all| goes_to(&forward, field.of(&all.patch))) =>
        {
            left_alone(facts, pod, wrong);
        }
        (None, _) => wrong.push(format!("S12: {name} is changed, and its engine may run")),
    }
}

/// The label of the revision says that all of it is there; of an operator's pod the annotation says otherwise.
pub(super) fn metadata(
    facts: &Input,
    uid: &str,
    labels: &BTreeMap<String, Change>,
    annotations: &BTreeMap<String, Change>,
    wrong: &mut Vec<String>,
) {
    let Some((pod, live)) = living(facts, uid, wrong) else { return };
    if let Some(change) = annotations.get(ENVIRONMENT) {
        return variables(facts, pod, live, change, wrong);
    }
    let name = &pod.name;
    let now = pod.ahead.as_ref().map_or(&live.revision, |ahead| &ahead.revision);
    let label = labels.get(REVISION);
    let actual = annotations.get(ACTUAL_REVISION);
    if let Some(label) = label.filter(|label| label.seen.as_ref() != Some(now)) {
        wrong.push(format!("{name}: its revision was not seen as {:?}", label.seen));
    }
    if label.is_none() && actual.is_none() {
        // It may have its revision, and lack the note of what its container was started with.
        if !labels.is_empty() {
            wrong.push(format!("S12: {name} is labelled without its revision"));
        }
        return;
    }
    let named = label.and_then(|label| label.wanted.as_ref()).unwrap_or(now);
    let says = match actual.map(|change| &change.wanted) {
        Some(Some(actual)) => actual,
        None if pod.annotations.contains_key(ACTUAL_REVISION) => &live.revision,
        Some(None) | None => named,
    };
    // What it was made from does not change.
    if *says == live.revision {
        return if named == says {
            back(facts, pod, wrong);
        } else {
            ahead(facts, pod, named, wrong);
        };
    }
    let member = facts.member(uid).filter(|member| member.is_under_way());
    let owed = facts.start_debt(uid).and_then(|debt| debt.update.as_ref());
    let stays = owed.filter(|fixed| is_kept(fixed, live));
    let update = match member {
        Some(Member { step: MemberStep::Aborting, update: Some(fixed), .. })
            if is_kept(fixed, live) =>
        {
            Some(&fixed.update)
        }
        Some(member) => {
            let is_proven = member.step == MemberStep::Restarting
                && facts.is_back(member)
                && why_not_carried_out(pod, member).is_none();
            if !is_proven {
                wrong.push(format!("S3: {name} is labelled before the proof"));
            }
            for container in member.update.iter().flat_map(|fixed| fixed.others.keys()) {
                if !live.others.get(container).is_some_and(|other| other.ready) {
                    wrong.push(format!("S3: {name} is labelled and its {container} is not ready"));
                }
            }
            member.update.as_ref().map(|fixed| &fixed.update)
        }
        None if stays.is_some() => stays.map(|fixed| &fixed.update),
        None => {
            left_alone(facts, pod, wrong);
            let update = pod.update.as_ref().ok().and_then(Option::as_ref);
            let is_relabelled = |update: &&PodUpdate| {
                update.step == UpdateStep::Relabel && facts.policy.update.contains(&update.step)
            };
            update.filter(is_relabelled).or_else(|| repair(facts, pod))
        }
    };
    let Some(update) = update else {
        wrong.push(format!("S12: {name} is labelled and nothing asks for it"));
        return;
    };
    if *says != update.to {
        wrong.push(format!("S12: {name} is labelled {says:?}, not {}", update.to));
    }
    if lacks(&update.patch.images, &live.images) {
        wrong.push(format!("S3: {name} is labelled and has other images"));
    }
    if update.step == UpdateStep::Resize && lacks(&update.patch.resources, &live.resources) {
        wrong.push(format!("S3: {name} is labelled and has another size"));
    }
}

/// The pod keeps a part that cannot be set back, or another container with nothing but what it has read at its start.
fn is_kept(fixed: &MemberUpdate, live: &LivePod) -> bool {
    let patch = &fixed.update.patch;
    let mut changes = patch.images.values().chain(patch.resources.values()).chain(&patch.variables);
    let is_another = fixed.update.makes_a_container() && live.container_id != fixed.container_id;
    !fixed.stays.is_empty() || is_another && changes.all(|change| change.seen == change.wanted)
}

/// Between stop and start, to those of the update or back.
fn variables(facts: &Input, pod: &Pod, live: &LivePod, change: &Change, wrong: &mut Vec<String>) {
    let name = &pod.name;
    if pod.annotations.get(ENVIRONMENT) != change.seen.as_ref() || change.seen == change.wanted {
        wrong.push(format!("{name}: its variables are changed from {:?}", change.seen));
    }
    let member = facts.member(&pod.uid).filter(|member| member.is_under_way());
    let owed = facts.start_debt(&pod.uid).and_then(|debt| debt.update.as_ref());
    let fixed = member.and_then(|member| member.update.as_ref()).or(owed);
    let known = fixed.and_then(|fixed| fixed.update.patch.variables.as_ref());
    let wanted = match member {
        Some(member) if member.step == MemberStep::Restarting => {
            if !is_stopped_by(facts, &pod.uid, member.stop_sequence) {
                wrong.push(format!("S12: {name} gets variables before it is stopped"));
            }
            known.map(|known| &known.wanted)
        }
        Some(_) | None => {
            is_down(facts, pod, live, wrong);
            known.map(|known| &known.seen)
        }
    };
    if wanted != Some(&change.wanted) {
        wrong.push(format!("S12: {name} gets variables that its entry does not have"));
    }
}

/// The name that its manager has for the variables of a member's update.
fn digest(fixed: &MemberUpdate) -> Option<String> {
    let wanted = fixed.update.patch.variables.as_ref()?.wanted.clone().unwrap_or_default();
    Some(ContentDigest::of(wanted.as_bytes()).to_string())
}

/// The update of a pod that has never started, if it is allowed: no engine is stopped for it.
fn repair<'a>(facts: &Input<'a>, pod: &'a Pod) -> Option<&'a PodUpdate> {
    let has_run = pod.not_started.is_none() || pod.manager.is_ok();
    let update = pod.update.as_ref().ok().and_then(Option::as_ref).filter(|_| !has_run)?;
    facts.policy.update.contains(&update.step).then_some(update)
}

/// A pod whose engine goes on is labelled only while nothing else concerns it.
fn left_alone(facts: &Input, pod: &Pod, wrong: &mut Vec<String>) {
    let cluster = &facts.snapshot.cluster;
    for (is_so, what) in [
        (cluster.paused, "while paused"),
        (!cluster.overlaps.is_empty(), "while another SearchCluster selects the same pods"),
        (facts.start_debt(&pod.uid).is_some(), "while a start is owed to it"),
    ] {
        if is_so {
            wrong.push(format!("S9: {} is labelled {what}", pod.name));
        }
    }
}

/// A member takes its slot for a step that is allowed.
pub(super) fn slot(facts: &Input, member: &Member, wrong: &mut Vec<String>) {
    let step = member.update.as_ref().map(|fixed| fixed.update.step);
    if let Some(step) = step.filter(|step| !facts.policy.update.contains(step)) {
        let (node, step) = (&member.node, step.name());
        wrong.push(format!("S12: {node} takes a slot for the step {step}, which is not allowed"));
    }
}

/// A node that is done has what its pod was to be changed to, and says so.
pub(super) fn done(facts: &Input, member: &Member, wrong: &mut Vec<String>) {
    let Some(fixed) = &member.update else { return };
    let (node, to) = (&member.node, &fixed.update.to);
    if let Some(successor) = facts.successor(member) {
        if fixed.update.step != UpdateStep::Replace {
            return;
        }
        if successor.live.as_ref().is_some_and(|live| live.claims != fixed.claims) {
            wrong.push(format!("S3: {node} is done and mounts other volume claims"));
        }
        let is_another = |(claim, old): (&String, &String)| {
            let now = successor.claim_uids.as_ref().ok().and_then(|uids| uids.get(claim));
            now.is_some_and(|now| now != old)
        };
        if fixed.claim_uids.iter().any(is_another) {
            wrong.push(format!("S3: {node} is done and a volume claim was made again"));
        }
        let lacks = successor.update.as_ref().ok().and_then(Option::as_ref);
        if lacks.is_some_and(|lacks| lacks.to == *to && lacks.from != *to) {
            wrong.push(format!("S3: {node} is done and its new pod lacks {to}"));
        }
        return;
    }
    let Some(pod) = facts.pod(&member.pod_uid) else { return };
    if let Some(why) = why_not_carried_out(pod, member) {
        wrong.push(format!("S3: {node} is done and its pod is not as it is wanted: {why}"));
    }
    let run = facts.manager(&pod.uid).and_then(|manager| manager.run.as_ref());
    if let (Some(run), Some(wanted)) = (run, digest(fixed))
        && run.variables != Some(wanted)
    {
        wrong.push(format!("S3: {node} is done and runs with other variables"));
    }
    // Its labels have the time of a phase.
    let phase = facts.policy.phase_timeout;
    let is_late = fixed.late_since.is_some_and(|at| facts.snapshot.now.since(at) >= phase);
    let labelled = pod.live.as_ref().map(|live| &live.revision);
    if !is_late && labelled != Some(to) {
        wrong.push(format!("S3: {node} is done and labelled {labelled:?}, not {to}"));
    }
}

/// A pod that is replaced can be deleted, and another one in its place fits; another size has room.
pub(super) fn fits(facts: &Input, uid: &str, wrong: &mut Vec<String>) {
    let member = facts.member(uid).filter(|member| member.step == MemberStep::Restarting);
    let fixed = member.and_then(|member| member.update.as_ref());
    let is_replaced = fixed.is_some_and(|fixed| fixed.update.step == UpdateStep::Replace);
    let kept = facts.pod(uid).and_then(|pod| pod.undeletable.as_ref());
    if is_replaced && let Some(why) = kept {
        wrong.push(format!("S12: {uid} is to be replaced, and cannot be deleted: {why}"));
    }
    let room = facts.pod(uid).map(|pod| &pod.room);
    if is_replaced && room.is_some_and(|room| *room != Ok(None)) {
        wrong.push(format!("S12: {uid} is to be replaced, and would not fit: {room:?}"));
    }
    let is_resized = fixed.is_some_and(|fixed| fixed.update.step == UpdateStep::Resize);
    if is_resized && let Some(Ok(Some(why))) = room {
        wrong.push(format!("S12: {uid} is to be resized, and there is no room: {why}"));
    }
}

/// Only of a stopped member whose step it is, and whose process the cluster does not list any more.
pub(super) fn delete(facts: &Input, uid: &str, wrong: &mut Vec<String>) {
    let Some((pod, _)) = living(facts, uid, wrong) else { return };
    let name = &pod.name;
    let member = facts.member(uid).filter(|member| {
        let step = member.update.as_ref().map(|fixed| fixed.update.step);
        member.step == MemberStep::Restarting && step == Some(UpdateStep::Replace)
    });
    let Some(member) = member else {
        if repair(facts, pod).is_some_and(|update| update.step == UpdateStep::Replace) {
            left_alone(facts, pod, wrong);
        } else {
            wrong.push(format!("S12: {name} is deleted and is not to be replaced"));
        }
        return;
    };
    if !is_stopped_by(facts, uid, member.stop_sequence) {
        wrong.push(format!("S12: {name} is deleted before it is stopped"));
    }
    let listed = facts.node(&member.node);
    if listed.is_some_and(|node| Some(&node.ephemeral_id) == member.ephemeral_id.as_ref()) {
        wrong.push(format!("S12: {name} is deleted while the cluster lists it"));
    }
    if pod.terminating {
        wrong.push(format!("{name} is deleted twice"));
    }
}

/// A manager is told to end only where a new container is wanted, and no new image makes one.
pub(super) fn exit(facts: &Input, uid: &str, sequence: u64, exit: bool, wrong: &mut Vec<String>) {
    let turn = facts
        .member(uid)
        .filter(|member| member.step == MemberStep::Restarting && member.stop_sequence == sequence);
    let fixed = turn.and_then(|member| member.update.as_ref());
    let is_wanted = fixed.is_some_and(|fixed| {
        let live = facts.pod(uid).and_then(|pod| pod.live.as_ref());
        let engine = facts.pod(uid).and_then(|pod| pod.container.as_ref());
        let image = engine.and_then(|engine| fixed.update.patch.images.get(engine));
        let has_it = live.zip(engine).is_some_and(|(live, engine)| {
            image.is_none_or(|image| live.images.get(engine) == image.wanted.as_ref())
        });
        fixed.update.makes_a_container() && has_it
    });
    if exit != is_wanted {
        wrong.push(format!("S12: the manager of {uid} is told to end: {exit}, not {is_wanted}"));
    }
}

pub(super) fn is_for_updates(restart: &Restart) -> bool {
    restart.request.by.as_deref() == Some("spec.update")
}

/// Nothing is to be updated, or not this way; or somebody wants the node to be stopped.
pub(super) fn is_left_out(facts: &Input, restart: &Restart, uid: &str) -> bool {
    let is_needless = facts.pod(uid).is_some_and(|pod| match &pod.update {
        Ok(Some(update)) => {
            !facts.policy.update.contains(&update.step)
                || pod.undeletable.is_some()
                || pod.unchangeable.is_some()
        }
        Ok(None) => true,
        Err(_) => false,
    });
    let is_to_be_stopped = facts.pod(uid).is_some_and(|pod| should_be_stopped(facts, pod));
    let is_stopped = facts.manager(uid).is_some_and(|one| one.desired == Desired::Stopped)
        && facts.start_debt(uid).is_none();
    is_for_updates(restart) && (is_needless || is_to_be_stopped || is_stopped)
}

/// What of a member's pod is not as it is wanted; its labels come later.
pub(super) fn why_not_carried_out(pod: &Pod, member: &Member) -> Option<String> {
    let fixed = member.update.as_ref()?;
    let Some(live) = &pod.live else { return Some("its pod was not read".into()) };
    let step = fixed.update.step;
    if lacks(&fixed.update.patch.images, &live.images) {
        return Some("it has other images".into());
    }
    if step == UpdateStep::Resize && lacks(&fixed.update.patch.resources, &live.resources) {
        return Some("it has another size".into());
    }
    let resources = &fixed.update.patch.resources;
    if step == UpdateStep::Resize && resources.keys().any(|one| !live.resized.contains(one)) {
        return Some("its size is not in effect".into());
    }
    let mounted = pod.manager.as_ref().ok().map(|manager| &manager.variables);
    if let (Some(mounted), Some(wanted)) = (mounted, digest(fixed))
        && *mounted != Some(wanted)
        && step.is_of_a_restart()
    {
        return Some("its variables are not mounted".into());
    }
    let is_old = live.container_id.is_none() || live.container_id == fixed.container_id;
    if fixed.update.makes_a_container() && is_old {
        return Some("its container is the old one".into());
    }
    let is_old = |(container, before): (&String, &String)| {
        let other = live.others.get(container);
        let last = other.and_then(|other| other.id.as_ref().or(other.ended_id.as_ref()));
        last.is_none_or(|last| last == before)
    };
    if fixed.others.iter().any(is_old) {
        return Some("another container is the old one".into());
    }
    (step == UpdateStep::Replace).then(|| "it is the old pod".into())
}

fn lacks(wanted: &BTreeMap<String, Change>, live: &BTreeMap<String, String>) -> bool {
    wanted.iter().any(|(container, change)| live.get(container) != change.wanted.as_ref())
}

fn living<'a>(
    facts: &Input<'a>,
    uid: &str,
    wrong: &mut Vec<String>,
) -> Option<(&'a Pod, &'a LivePod)> {
    let pod = facts.pod(uid);
    let living = pod.and_then(|pod| Some((pod, pod.live.as_deref()?)));
    if living.is_none() {
        wrong.push(format!("{uid} is changed and was not seen"));
    }
    living
}

/// The manager reports that its engine is stopped by this request.
fn is_stopped_by(facts: &Input, uid: &str, sequence: u64) -> bool {
    // Another client's start may have been refused since.
    facts.manager(uid).is_some_and(|manager| {
        manager.state == State::Stopped
            && manager.desired == Desired::Stopped
            && manager.sequence >= sequence
    })
}

/// No engine runs in the pod.
fn is_down(facts: &Input, pod: &Pod, live: &LivePod, wrong: &mut Vec<String>) {
    let is_down = match facts.manager(&pod.uid) {
        Some(manager) => manager.state == State::Stopped && manager.desired == Desired::Stopped,
        None => live.waiting.is_some(),
    };
    if !is_down {
        wrong.push(format!("S12: {} is set back, and its engine may run", pod.name));
    }
}
