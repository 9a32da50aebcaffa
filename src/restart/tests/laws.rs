//! Laws for a whole run, checked on what really happened in the simulation, not on plans.

use std::collections::{BTreeMap, BTreeSet};

use super::world::template::Template;
use super::world::{SimPod, Verdict, World};
use crate::{
    AllocationBefore, Direction, Event, LastRestart, Ledger, Member, MemberStep, Outcome, Policy,
    Reason, Restart, Sources, Strategy, annotation,
};
use stayput_api::{Desired, RequestKind};

/// The caller that the managers see in our requests.
const US: &str = "stayput-reconciler";

#[derive(Debug)]
pub(crate) struct Laws {
    pub(crate) wrong: Vec<String>,
    /// The allocation setting that must be restored at the end.
    pub(crate) before: AllocationBefore,
    /// The nodes that must be excluded from voting at the end.
    pub(crate) excluded: BTreeSet<String>,
    /// Number of requests that were checked.
    seen: usize,
    /// Restarts begun, and how they ended.
    begun: BTreeSet<String>,
    over: BTreeMap<String, Outcome>,
    queued: BTreeSet<String>,
    /// Stops of ours that took effect: restart, pod, direction.
    stops: BTreeMap<(String, String, Direction), u64>,
    used: BTreeSet<(String, u64)>,
    /// The configs every pod ran on when the restart under way, and those it superseded, began.
    configs: BTreeMap<String, BTreeSet<String>>,
    /// The config that each pod was last to be started on: a member that is done forgets it.
    expected: BTreeMap<String, String>,
    /// Pods whose manager got requests of another client since the restart began.
    interfered: BTreeSet<String>,
    /// Pods whose manager has started its engine by itself after a stop of ours.
    resumed: BTreeSet<String>,
    /// The config that each engine ran on when we last stopped it: what it came back on by itself before is
    /// not our doing.
    stopped_on: BTreeMap<String, String>,
    /// Whether it, or one that it superseded, has stopped any engine.
    has_stopped: bool,
    /// Pods whose manager another client gave a request, and pods that the apiserver refused to set back, with the template that their label named then. An update that it interrupted is left as it is, and the label says less than is there.
    interrupted: BTreeMap<String, Template>,
    /// When a slot was last given back because of a rule.
    given_back_at: Option<u64>,
    /// Pods that were absent for so long that nothing waited for them any more.
    given_up: BTreeSet<String>,
    /// The engine was red.
    pub(crate) was_red: bool,
}

impl Laws {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            wrong: Vec::new(),
            before: world.engine.allocation.setting.clone(),
            excluded: BTreeSet::new(),
            seen: 0,
            begun: BTreeSet::new(),
            over: BTreeMap::new(),
            queued: BTreeSet::new(),
            stops: BTreeMap::new(),
            used: BTreeSet::new(),
            configs: BTreeMap::new(),
            expected: BTreeMap::new(),
            interfered: BTreeSet::new(),
            resumed: BTreeSet::new(),
            stopped_on: BTreeMap::new(),
            has_stopped: false,
            interrupted: BTreeMap::new(),
            given_back_at: None,
            given_up: BTreeSet::new(),
            was_red: false,
        }
    }

    /// Checks the requests since the last call.
    pub(crate) fn check(&mut self, world: &World, policy: &Policy) {
        self.was_red |= world.engine.health(world.now).color == crate::Color::Red;
        // An engine that came back by itself after our stop may be stopped once more.
        for pod in &world.pods {
            let manager = pod.machine.status(world.now);
            let last = manager.last_request.as_ref();
            let came_back = manager.desired == Desired::Running
                && last.is_some_and(|last| last.kind == RequestKind::Stop && last.accepted);
            if came_back {
                self.resumed.insert(pod.uid.clone());
                self.stops.retain(|(_, uid, _), _| *uid != pod.uid);
            }
        }
        self.stays(world);
        let fresh: Vec<_> = world.judged[self.seen..].to_vec();
        self.seen = world.judged.len();
        for judged in fresh {
            if judged.by != US {
                self.interfered.insert(judged.uid.clone());
                let pod = world.pods.iter().find(|pod| pod.uid == judged.uid);
                let actual = pod.map(|pod| (judged.uid, pod.living.actual.clone()));
                self.interrupted.extend(actual);
                continue;
            }
            let (Verdict::Accepted, Some(sequence)) = (&judged.verdict, judged.sequence) else {
                continue;
            };
            if !self.used.insert((judged.uid.clone(), sequence)) {
                self.wrong.push(format!("S5: {sequence} took effect twice at {}", judged.pod));
            }
            if !judged.is_stop && judged.took_effect {
                self.not_mixed(world, policy, &judged.uid, sequence);
            }
            if !(judged.is_stop && judged.took_effect) {
                continue;
            }
            self.has_stopped = true;
            let pod = world.pods.iter().find(|pod| pod.uid == judged.uid);
            if let Some(ran) = pod.and_then(|pod| pod.machine.checksum()) {
                self.stopped_on.insert(judged.uid.clone(), ran.to_owned());
            }
            let Some(restart) = &world.ledger().restart else { continue };
            let member = restart.members.iter().find(|member| member.pod_uid == judged.uid);
            let Some(member) = member else { continue };
            // A person wants it kept stopped: no part of the restart.
            let mut kept = world.ledger().kept_stopped.iter();
            if kept.any(|kept| kept.pod_uid == judged.uid && kept.sequence == sequence) {
                continue;
            }
            let turn = member.stop_sequence == sequence;
            let key = (
                restart.request.id.clone(),
                judged.uid.clone(),
                if turn { Direction::Forward } else { Direction::Back },
            );
            let stops = self.stops.entry(key).or_default();
            *stops += 1;
            if *stops > 1 {
                self.wrong.push(format!("S5: {} was stopped twice", judged.pod));
            }
            if restart.request.strategy != Strategy::Coordinated && turn {
                self.not_too_many(world, policy, restart, &judged.pod);
            }
        }
    }

    /// S13: neither a rolling restart that we requested ourselves nor the end of being kept stopped ever
    /// starts a node where it cannot be in one cluster with the others: with another name of the cluster
    /// than it had, which they still have.
    fn not_mixed(&mut self, world: &World, policy: &Policy, uid: &str, sequence: u64) {
        let Some(pod) = world.pods.iter().find(|pod| pod.uid == uid) else { return };
        let restart = world.ledger().restart.as_ref();
        let is_own = restart.is_some_and(|restart| {
            let by = restart.request.by.as_deref().unwrap_or_default();
            by.starts_with("spec.") && restart.request.strategy == Strategy::Rolling
        });
        let mut kept = world.ledger().kept_stopped.iter();
        let is_kept = kept.any(|kept| kept.pod_uid == uid && kept.sequence == sequence);
        let before: Vec<&String> = if is_kept {
            pod.machine.last_good.iter().collect()
        } else {
            let begun_on = self.configs.get(uid).into_iter().flatten();
            begun_on.chain(self.stopped_on.get(uid)).collect()
        };
        let name = |config: &str| world.configs.get(config)?.get("cluster.name");
        let before: BTreeSet<&String> =
            before.into_iter().filter_map(|config| name(config)).collect();
        let now = pod.machine.checksum().and_then(name);
        // Without a config to go back to, what is mounted is all there is.
        let can_go_back = policy.rollback && pod.machine.last_good.is_some();
        let is_ours = is_own || is_kept;
        let Some(now) = now.filter(|now| is_ours && can_go_back && !before.contains(now)) else {
            return;
        };
        let others = world.pods.iter().filter(|other| other.uid != uid && !other.gone);
        let mut others = others.filter_map(|other| name(other.machine.checksum()?));
        if others.any(|other| before.contains(other)) {
            self.wrong.push(format!("S13: {} is started as a node of {now}", pod.name));
        }
    }

    /// S1, in the simulation.
    fn not_too_many(&mut self, world: &World, policy: &Policy, restart: &Restart, this: &str) {
        // A node that was not in the cluster when it took its slot was down already.
        let taken: Vec<_> = restart
            .members
            .iter()
            .filter(|member| member.is_under_way() && member.ephemeral_id.is_some())
            .collect();
        let down = world.pods.iter().filter(|pod| {
            let ours = taken.iter().any(|member| member.pod_uid == pod.uid);
            ours && !pod.gone && (pod.name == this || pod.machine.up(world.now).is_none())
        });
        let down = down.count();
        if down > policy.max_unavailable.of(world.pods.len()) && !restart.request.goes_as_a_whole()
        {
            self.wrong.push(format!("S1: {down} nodes are down after the stop of {this}"));
        }
    }

    /// The ledger was written.
    pub(crate) fn ledger(&mut self, world: &World, policy: &Policy, old: &Ledger, new: &Ledger) {
        self.withdrawn(world, policy, old, new);
        self.pauses(world, old, new);
        self.hidden(world, old, new);
        for member in new.members() {
            if let Some(expected) = member.expected.clone() {
                self.expected.insert(member.pod_uid.clone(), expected);
            }
        }
        let id = |ledger: &Ledger| ledger.restart.as_ref().map(|now| now.request.id.clone());
        if id(old) != id(new) {
            // A restart that supersedes another one is responsible for its nodes as well.
            let under_way = |restart: &Restart| restart.members.iter().any(Member::is_under_way);
            let superseded = new.restart.is_some() && old.restart.as_ref().is_some_and(under_way);
            if let Some(before) = old.restart.as_ref().filter(|_| !superseded) {
                self.is_over(world, before, new);
            }
            if let Some(begun) = &new.restart {
                self.begun.insert(begun.request.id.clone());
                if !superseded {
                    self.interfered.clear();
                    self.resumed.clear();
                    self.has_stopped = false;
                    self.configs.clear();
                }
                for pod in &world.pods {
                    let now = pod.machine.checksum().map(str::to_owned);
                    self.configs.entry(pod.uid.clone()).or_default().extend(now);
                }
            }
        }
        for entry in new.history.iter().filter(|entry| !old.history.contains(entry)) {
            if let Some(before) = self.over.insert(entry.id.clone(), entry.outcome) {
                self.wrong.push(format!("L1: {} ended twice, first {before:?}", entry.id));
            }
        }
        self.queued.extend(new.queued.iter().map(|queued| queued.id.clone()));
    }

    /// S8: no debt to the engine is struck while it hides what is to be undone.
    fn hidden(&mut self, world: &World, old: &Ledger, new: &Ledger) {
        let is_struck = old.debts.allocation.is_some() && new.debts.allocation.is_none()
            || old.debts.exclusion.is_some() && new.debts.exclusion.is_none()
            || old.debts.records.len() > new.debts.records.len();
        if is_struck && world.engine.recovery.is_under_way() {
            self.wrong.push("S8: a debt is struck while the engine has not read its state".into());
        }
    }

    /// L5: after a slot was given back because of a rule, there is a pause before the next one.
    fn pauses(&mut self, world: &World, old: &Ledger, new: &Ledger) {
        let step = |ledger: &Ledger, uid: &str| {
            ledger.members().find(|one| one.pod_uid == uid).map(|one| one.step)
        };
        for member in new.members() {
            let before = step(old, &member.pod_uid);
            match (before, member.step) {
                (Some(MemberStep::GivingBack), MemberStep::Scheduled) if member.given_back > 0 => {
                    self.given_back_at = Some(world.now);
                }
                (Some(MemberStep::Scheduled), MemberStep::Restarting)
                    if member.given_back > 0
                        && self.given_back_at.is_some_and(|at| world.now < at + 10_000) =>
                {
                    self.wrong.push(format!("L5: {} has a slot again at once", member.node));
                }
                _ => {}
            }
        }
    }

    /// A member, or a start that is owed, is given up for its absent pod only after a long absence.
    fn withdrawn(&mut self, world: &World, policy: &Policy, old: &Ledger, new: &Ledger) {
        for member in old.members().filter(|member| member.step != MemberStep::Finished) {
            let ending = new.members().find(|other| other.pod_uid == member.pod_uid);
            let ending = ending.and_then(|other| other.ending.as_ref());
            if !ending.is_some_and(|ending| ending.reason.starts_with("its pod is gone")) {
                continue;
            }
            self.given_up(world, policy, &member.pod_uid);
        }
        let is_owed = |uid: &str| new.debts.start.iter().any(|debt| debt.pod_uid == uid);
        for debt in old.debts.start.iter().filter(|debt| !is_owed(&debt.pod_uid)) {
            if world.pods.iter().any(|pod| pod.uid == debt.pod_uid && pod.absent_since.is_some()) {
                self.given_up(world, policy, &debt.pod_uid);
            }
        }
    }

    /// Nothing waits for this pod any more. Every look for a long time must have missed it.
    fn given_up(&mut self, world: &World, policy: &Policy, uid: &str) {
        self.given_up.insert(uid.to_owned());
        if world.object.cluster.deleting && world.pods.iter().all(|pod| pod.gone) {
            // They are deleted with it, so nothing of them comes back.
            return;
        }
        let its = world.pods.iter().find(|pod| pod.uid == uid);
        // Another one may have taken its place, and be gone as well.
        let name = uid.rsplit_once("-uid").map(|(name, _)| name);
        let pod = its.or_else(|| world.pods.iter().find(|pod| Some(&*pod.name) == name));
        let since = pod.and_then(|pod| pod.absent_since);
        if since.is_none_or(|since| world.now < since + policy.phase_timeout) {
            self.wrong.push(format!("{uid} is given up after a short absence"));
        }
    }

    /// S11: no restart ends with some nodes on one config and others on another. One that has stopped
    /// no engine has started none either: on which config an engine came back by itself is not its
    /// doing.
    fn is_over(&mut self, world: &World, before: &Restart, new: &Ledger) {
        if before.request.strategy != Strategy::Coordinated || !self.has_stopped {
            return;
        }
        let (mut old, mut fresh) = (Vec::new(), Vec::new());
        // Sources that moved meanwhile may have kept a manager from bringing its engine back by itself, as
        // others have: those are good on the new config by then, and have no earlier one to return to.
        let has_moved = before.members.iter().any(|member| {
            let pod = world.pods.iter().find(|pod| pod.uid == member.pod_uid);
            let expected = self.expected.get(&member.pod_uid);
            let sources = pod.map(|pod| &pod.sources);
            expected.is_some_and(|one| sources != Some(&Sources::Checksum(one.clone())))
        });
        for member in &before.members {
            let pod = world.pods.iter().find(|pod| pod.uid == member.pod_uid && !pod.gone);
            let owed = new.debts.start.iter().any(|debt| debt.pod_uid == member.pod_uid);
            let is_kept = new.kept_stopped.iter().any(|entry| entry.pod_uid == member.pod_uid);
            let Some(pod) = pod.filter(|_| !owed && !is_kept) else { continue };
            let was = self.configs.get(&member.pod_uid);
            let expected = self.expected.get(&member.pod_uid);
            // A pod that was replaced in the middle has no earlier config to return to, only the
            // one that its engine was first started on.
            let new_pod = was.is_none()
                && before.direction == Direction::Back
                && pod.machine.last_good.as_ref().is_none_or(|good| Some(good) == expected);
            let has_had = |config: &String| was.is_some_and(|was| was.contains(config));
            if expected.is_some_and(has_had)
                || new_pod
                || self.interfered.contains(&member.pod_uid)
                || self.given_up.contains(&member.pod_uid)
                || has_moved && self.resumed.contains(&member.pod_uid)
            {
                continue;
            }
            match pod.machine.checksum() {
                Some(now) if Some(now) == expected.map(String::as_str) => fresh.push(&member.node),
                Some(now) if has_had(&now.to_owned()) => old.push(&member.node),
                _ => {}
            }
        }
        if !old.is_empty() && !fresh.is_empty() {
            self.wrong.push(format!(
                "S11: {} ends split: {old:?} on the old config, {fresh:?} on the new one",
                before.request.id
            ));
        }
    }

    /// A node that came back as requested is shown so, whatever the outcome of the whole restart.
    fn check_last_restart_event(&self, world: &World, pod: &SimPod, wrong: &mut Vec<String>) {
        let Some(last) = pod.annotations.get(annotation::LAST_RESTART) else { return };
        let last: LastRestart = serde_json::from_str(last).unwrap();
        let of_pod = |event: &&(u64, Event)| event.1.pod.as_ref() == Some(&pod.uid);
        let found = world.events.iter().rev().filter(of_pod).find(|(_, event)| {
            matches!(event.reason, Reason::NodeRestarted | Reason::NodeRestartAborted)
        });
        let since = |at: u64| at >= last.started.0;
        if let Some((at, event)) = found
            && since(*at)
            && event.reason == Reason::NodeRestarted
            && last.outcome != Outcome::Done
            && !pod.has_refused
        {
            wrong.push(format!("{} is back and shows {:?}", pod.name, last.outcome));
        }
    }

    /// L6: once no controller runs any more, a manager starts only engines that are to run.
    pub(crate) fn long_after_the_end(&self, world: &World) -> Vec<String> {
        let undone = |pod: &&SimPod| {
            let is_stopped = pod.machine.life().desired() == Desired::Stopped;
            !pod.gone && !is_stopped && stopped_by_person(world, &pod.uid)
        };
        let undone = world.pods.iter().filter(undone);
        undone.map(|pod| format!("L6: the stop of {} by a person is undone", pod.name)).collect()
    }

    /// Pods that the apiserver has refused to set back, and whose label does not say what they have.
    fn stays(&mut self, world: &World) {
        let ledger = world.ledger();
        let members = ledger.members().map(|member| (&member.pod_uid, &member.update));
        let owed = ledger.debts.start.iter().map(|debt| (&debt.pod_uid, &debt.update));
        for (uid, update) in members.chain(owed) {
            let stays = update.as_ref().is_some_and(|fixed| !fixed.stays.is_empty());
            let pod = world.pods.iter().find(|pod| stays && pod.uid == *uid);
            let pod = pod.filter(|pod| pod.living.why_mislabelled().is_some());
            let actual = pod.map(|pod| (uid.clone(), pod.living.actual.clone()));
            self.interrupted.extend(actual);
        }
    }

    /// L1 to L4, once all faults are over.
    pub(crate) fn at_the_end(&self, world: &World) -> Vec<String> {
        let mut wrong = Vec::new();
        let ledger = world.ledger();
        let is_gone = world.object.is_gone();
        for id in self.begun.iter().chain(&self.queued) {
            // With its SearchCluster a restart that has stopped nothing is gone.
            let is_under_way = ledger.restart.as_ref().is_some_and(|restart| {
                restart.request.id == *id && restart.members.iter().any(Member::is_under_way)
            });
            if !self.over.contains_key(id) && (!is_gone || is_under_way) {
                wrong.push(format!("L1: {id} did not end"));
            }
        }
        // A debt to an engine stays unpaid while a person keeps it from forming a cluster.
        let can_be_paid = world.engine.observe(world.now).is_ok();
        if !ledger.debts.start.is_empty() || can_be_paid && !ledger.debts.is_empty() {
            wrong.push(format!("L2: owed at the end: {:?}", ledger.debts));
        }
        let allocation = &world.engine.allocation;
        if can_be_paid && (allocation.marker.is_some() || allocation.setting != self.before) {
            wrong.push(format!("S8: allocation at the end: {:?}", world.engine.allocation));
        }
        let excluded = &world.engine.votes.excluded;
        if can_be_paid && *excluded != self.excluded {
            wrong.push(format!("S8: excluded from voting at the end: {excluded:?}"));
        }
        wrong.extend(world.pods.iter().flat_map(|pod| pod.killed.clone()));
        for pod in world.pods.iter().filter(|pod| !pod.gone && pod.living.is_read) {
            let is_left = self.interrupted.get(&pod.uid) == Some(&pod.living.actual);
            if let Some(why) = pod.living.why_mislabelled().filter(|_| !is_left) {
                wrong.push(format!("S3: {} {why}", pod.name));
            }
        }
        // A SearchCluster that never got its finalizer has stopped nothing, and may leave phases.
        let was_never_held = is_gone && ledger.restart.is_some();
        let went_without_patches = is_gone && ledger.still_shown_since.is_some();
        for pod in world.pods.iter().filter(|pod| !pod.gone) {
            let is_kept = ledger.kept_stopped.iter().any(|entry| entry.pod_uid == pod.uid);
            let by_person = stopped_by_person(world, &pod.uid);
            let is_given_up = self.given_up.contains(&pod.uid) && pod.machine.will_resume();
            let is_stopped = pod.machine.life().desired() == Desired::Stopped;
            if is_stopped && !is_kept && !by_person && !is_given_up {
                wrong.push(format!("L3: {} is left stopped", pod.name));
            }
            self.check_last_restart_event(world, pod, &mut wrong);
            for key in [annotation::PHASE, annotation::SHOWN] {
                let was_refused = went_without_patches && pod.has_refused;
                let may_stay = was_never_held || pod.patched_late || was_refused;
                if let Some(value) = pod.annotations.get(key).filter(|_| !may_stay) {
                    wrong.push(format!("L4: {} still has {key}={value}", pod.name));
                }
            }
        }
        wrong
    }
}

/// Whether a person has stopped the engine of this pod, and nobody has started it since.
fn stopped_by_person(world: &World, uid: &str) -> bool {
    let of_pod = world.judged.iter().rev().filter(|judged| judged.uid == uid);
    let accepted = of_pod.filter(|judged| judged.verdict == Verdict::Accepted);
    accepted.take_while(|judged| judged.is_stop).any(|judged| judged.by != US)
}
