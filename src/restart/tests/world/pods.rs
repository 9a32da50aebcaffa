//! A simulated pod and its kubelet.

use std::collections::BTreeMap;

use super::machine::Machine;
use super::template::{self, Living, Template};
use crate::{Change, Endpoint, Known, Manager, Operator, Pod, Sources, Time, Unknown, annotation};

/// The longest time until the kubelet syncs a pod's volumes by itself, in milliseconds.
const KUBELET: u64 = 80_000;
/// The time until it syncs them after a patch of the pod, in milliseconds.
const NUDGED: u64 = 1_000;

/// Until an owner has made another pod, in milliseconds.
const REMADE: u64 = 2_000;

/// Until an operator acts on what it sees, in milliseconds.
const OPERATOR: u64 = 1_000;

/// From the begin of a drain until EndpointSlices show the pod as not ready, in milliseconds.
const PROBED: u64 = 1_000;

/// What EndpointSlices show of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Services {
    /// They cannot be listed.
    Unknown,
    /// None has it.
    Absent,
    /// They have it as ready until its readiness probe fails.
    Send,
    /// They have it as ready also after that.
    SendAlways,
}

#[derive(Debug, Clone)]
pub(crate) struct SimPod {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) terminating: bool,
    pub(crate) gone: bool,
    /// It exists, but the reconciler's list does not have it.
    pub(crate) unlisted: bool,
    /// Since when every look at the list has missed it. Between two looks nobody knows.
    pub(crate) absent_since: Option<u64>,
    pub(crate) outdated: Option<String>,
    /// Its node leaves the cluster.
    pub(crate) leaving: Option<String>,
    pub(crate) deadly_probe: Option<String>,
    pub(crate) operator: Option<Operator>,
    /// The phase that a tool writes whenever it is not there, as part of a configuration.
    pub(crate) applied_phase: Option<String>,
    pub(crate) services: Services,
    pub(crate) sources: Sources,
    pub(crate) machine: Machine,
    /// A container beside the engine's crashes again and again.
    pub(crate) sidecar_crashes: bool,
    /// What its owner wants of it, and what it has.
    pub(crate) living: Living,
    /// The apiserver refuses every patch of its annotations.
    pub(crate) refuses_patches: bool,
    /// It has refused one: the result of its own node may be forgotten.
    pub(crate) has_refused: bool,
    /// A patch of ours arrived after the SearchCluster was gone.
    pub(crate) patched_late: bool,
    /// When its operator deletes it.
    operator_at: Option<u64>,
    /// When its owner makes another one in its place.
    remade_at: Option<u64>,
    /// What the kubelet did to an engine that ran.
    pub(crate) killed: Vec<String>,
    /// The kubelet does not sync the config.
    pub(crate) mount_is_stuck: bool,
    kubelet_at: Option<u64>,
    container_back_at: Option<u64>,
    drains_since: Option<u64>,
    /// What the reconciler remembers of its manager.
    pub(crate) seen: Option<Manager>,
}

impl SimPod {
    pub(crate) fn new(name: &str, incarnation: u32, config: &str, now: u64) -> Self {
        let uid = format!("{name}-uid{incarnation}");
        Self {
            machine: Machine::running(&uid, config, now),
            uid,
            name: name.to_owned(),
            annotations: BTreeMap::new(),
            terminating: false,
            gone: false,
            unlisted: false,
            absent_since: None,
            outdated: None,
            leaving: None,
            deadly_probe: None,
            operator: None,
            applied_phase: None,
            services: Services::Unknown,
            sources: Sources::Checksum(config.to_owned()),
            sidecar_crashes: false,
            living: Living::new(&template::first()),
            refuses_patches: false,
            has_refused: false,
            patched_late: false,
            operator_at: None,
            remade_at: None,
            killed: Vec::new(),
            mount_is_stuck: false,
            kubelet_at: None,
            container_back_at: None,
            drains_since: None,
            seen: None,
        }
    }

    pub(crate) const fn is_listed(&self) -> bool {
        !self.gone && !self.unlisted
    }

    /// The reconciler looks at the list.
    pub(crate) fn is_looked_for(&mut self, now: u64) {
        self.absent_since = (!self.is_listed()).then(|| self.absent_since.unwrap_or(now));
        let manager = self.manager(now).ok();
        self.seen = manager.map(|manager| manager.seen_after(self.seen.as_ref(), Time(now)));
    }

    /// A source of its config changes.
    pub(crate) fn change_sources(&mut self, sources: Sources, now: u64) {
        self.sources = sources;
        self.kubelet_at = Some(now + KUBELET);
    }

    /// The tool applies its phase, if there is none.
    pub(crate) fn apply_phase(&mut self, now: u64) {
        let Some(phase) = self.applied_phase.clone() else { return };
        if !self.annotations.contains_key(annotation::PHASE) {
            self.annotations.insert(annotation::PHASE.to_owned(), phase);
            self.was_patched(now);
        }
    }

    /// A patch of labels and annotations.
    pub(crate) fn relabel(
        &mut self,
        labels: &BTreeMap<String, Change>,
        annotations: &BTreeMap<String, Change>,
        known: &[Template],
        now: u64,
    ) -> bool {
        if let Some(change) = annotations.get(annotation::ENVIRONMENT) {
            return self.living.gets_variables(change, now + NUDGED);
        }
        let before = self.living.labelled.clone();
        let says_actual = self.annotations.contains_key(annotation::ACTUAL_REVISION);
        if !self.living.relabel(labels, annotations, known, says_actual) {
            return false;
        }
        if self.living.labelled != before {
            self.living.labelled_at = now;
        }
        self.annotations.remove(annotation::ACTUAL_REVISION);
        let actual = annotations.get(annotation::ACTUAL_REVISION);
        let ahead = self.living.ahead().map(|_| template::revision(&self.living.actual));
        debug_assert!(actual.is_none_or(|change| change.wanted == ahead));
        self.annotations.extend(ahead.map(|name| (annotation::ACTUAL_REVISION.to_owned(), name)));
        true
    }

    /// Its object was patched, so the kubelet syncs it.
    pub(crate) fn was_patched(&mut self, now: u64) {
        if let Some(at) = &mut self.kubelet_at {
            *at = (*at).min(now + NUDGED);
        }
    }

    /// When the volumes are synced, if they ever are.
    pub(crate) fn unstick(&mut self, now: u64) {
        self.mount_is_stuck = false;
        self.kubelet_at = Some(now + NUDGED);
    }

    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let turns = self.machine.process_turns_at().filter(|at| *at > now);
        let kubelet = self.kubelet_at.filter(|_| !self.mount_is_stuck);
        let probed = self.drains_since.map(|since| since + PROBED).filter(|at| *at > now);
        let sidecar = &self.living.sidecar;
        let living =
            [self.living.kubelet_at, self.living.back_at, self.remade_at, self.operator_at];
        let living = living.into_iter().chain([sidecar.kubelet_at, sidecar.back_at]);
        if self.gone && self.remade_at.is_some() {
            return self.remade_at;
        }
        let turns = turns.chain(living.flatten());
        let variables = self.living.environment_at.filter(|_| !self.mount_is_stuck);
        let own = turns.chain(self.machine.next()).chain(kubelet).chain(variables);
        own.chain(self.container_back_at).chain(probed).min()
    }

    /// The kubelet probes it.
    pub(crate) fn follow_drain(&mut self, now: u64) {
        let is_draining = self.machine.is_draining();
        self.drains_since = is_draining.then(|| self.drains_since.unwrap_or(now));
    }

    pub(crate) fn happen(&mut self, now: u64) {
        if self.kubelet_at.is_some_and(|at| at <= now && !self.mount_is_stuck) {
            self.kubelet_at = None;
            if let Sources::Checksum(checksum) = &self.sources {
                self.machine.mounted = Some(checksum.clone());
            }
        }
        if self.living.environment_at.is_some_and(|at| at <= now && !self.mount_is_stuck) {
            self.living.environment_at = None;
            self.machine.environment = self.living.environment.clone().unwrap_or_default();
        }
        if self.remade_at.is_some_and(|at| at <= now) {
            self.is_remade(now);
            return;
        }
        if self.operator_at.is_some_and(|at| at <= now) {
            self.operator_at = None;
            self.is_deleted(now);
            return;
        }
        self.machine.wake(now);
        self.follow_drain(now);
        if self.living.kubelet_looks(now) {
            // A person may start it at any time.
            let last = self.machine.life().last_request().clone();
            let is_persons = last.is_some_and(|last| last.by == "person");
            if self.machine.checksum().is_some() && !is_persons {
                self.killed.push(format!("a new image ended the engine of {}", self.name));
            }
            self.machine.container_ends();
        }
        let limits = &self.living.limits;
        if self.living.sidecar.happen(now, limits) {
            self.living.version += 1;
        }
        if self.living.back_at.is_some_and(|at| at <= now) {
            self.living.back_at = None;
            if !self.living.container_ends_at_once() {
                self.container_restarts(now);
            }
        }
        let is_made = !self.living.limits.lacks_secret;
        if self.machine.has_exited() && self.container_back_at.is_none() && is_made {
            self.container_back_at = Some(now + 1_000);
        }
        if self.container_back_at.is_some_and(|at| at <= now) {
            self.container_back_at = None;
            if !self.living.is_without_container() {
                self.container_restarts(now);
            }
        }
    }

    /// The kubelet makes its manager's container anew.
    pub(crate) fn container_restarts(&mut self, now: u64) {
        self.living.has_new_container();
        let Living { limits, running_image, env, .. } = &self.living;
        self.machine.habits.fails = limits.break_engine(running_image, env);
        self.machine.comes_back(now);
    }

    /// It is deleted; its owner makes another one.
    pub(crate) fn is_deleted(&mut self, now: u64) {
        if self.machine.checksum().is_some() {
            self.killed.push(format!("a deletion ended the engine of {}", self.name));
        }
        self.gone = true;
        self.absent_since.get_or_insert(now);
        self.remade_at = Some(now + REMADE);
    }

    /// Its operator deletes it soon if it has an old label and is not ready. A healthy pod it leaves alone, by its
    /// budget.
    pub(crate) fn is_seen_by_its_operator(&mut self, now: u64) {
        let is_old = self.living.labelled != self.living.wanted;
        let is_down = self.machine.up(now).is_none() && !self.terminating && !self.gone;
        let is_deleted = self.operator.is_some() && self.living.is_read && is_old && is_down;
        self.operator_at = is_deleted.then(|| self.operator_at.unwrap_or(now + OPERATOR));
    }

    /// It is deleted, and no owner makes another one.
    pub(crate) fn goes_for_good(&mut self) {
        self.gone = true;
        self.remade_at = None;
    }

    fn is_remade(&mut self, now: u64) {
        let Sources::Checksum(config) = self.sources.clone() else { return };
        let incarnation: u32 = self.uid.rsplit("uid").next().unwrap().parse().unwrap();
        let mut next = Self::new(&self.name, incarnation + 1, &config, now);
        next.living = self.living.remade();
        next.operator = self.operator.clone();
        next.machine.variable.clone_from(&next.living.variable);
        next.machine.habits.breaks.clone_from(&next.living.limits.broken_variables);
        next.killed = std::mem::take(&mut self.killed);
        next.boots(now);
        *self = next;
    }

    /// A new pod starts, unless its image cannot be pulled.
    pub(crate) fn boots(&mut self, now: u64) {
        self.machine.boots_now(now);
        if self.living.not_started().is_some() {
            self.machine.container_ends();
        }
    }

    /// A Kubernetes node takes it after all.
    pub(crate) fn is_scheduled(&mut self, now: u64) {
        self.living.limits.is_full = false;
        if std::mem::take(&mut self.living.is_pending) {
            self.machine.boots_now(now);
        }
    }

    /// Since when the kubelet has seen that it drains.
    fn unready_since(&self, now: u64) -> Option<u64> {
        self.drains_since.map(|since| since + PROBED).filter(|seen| *seen <= now)
    }

    fn endpoint(&self, now: u64) -> Known<Endpoint> {
        let unready = self.unready_since(now).is_some();
        match self.services {
            Services::Unknown => {
                Err(Unknown { message: "EndpointSlices cannot be listed: forbidden".into() })
            }
            Services::Absent => Ok(Endpoint::Absent),
            Services::Send if unready => Ok(Endpoint::NotReady),
            Services::Send | Services::SendAlways => Ok(Endpoint::Ready),
        }
    }

    fn manager(&self, now: u64) -> Known<Manager> {
        let silent =
            self.machine.frozen || self.machine.unreachable || self.living.is_without_container();
        if silent || self.container_back_at.is_some() || self.lacks_its_secret() {
            let message = format!("the manager of {} does not answer", self.name);
            return Err(Unknown { message });
        }
        let mut manager = self.machine.status(now);
        if let Sources::Checksum(wanted) = &self.sources
            && manager.mounted.as_ref() != Some(wanted)
        {
            manager.lagging = Some("config/elasticsearch.yml".into());
        }
        Ok(manager.seen_after(self.seen.as_ref(), Time(now)))
    }

    /// The kubelet can make the container that is to come.
    pub(crate) fn secret_is_there(&mut self, now: u64) {
        self.living.limits.lacks_secret = false;
        self.container_back_at = self.machine.has_exited().then_some(now + 1_000);
    }

    /// The kubelet cannot make the container that is to come after the one that has ended.
    fn lacks_its_secret(&self) -> bool {
        self.living.limits.lacks_secret && self.machine.has_exited()
    }

    pub(crate) fn observe(&self, now: u64) -> Pod {
        let mut annotations = self.annotations.clone();
        let environment = self.living.environment.clone();
        annotations.extend(environment.map(|text| (annotation::ENVIRONMENT.to_owned(), text)));
        Pod {
            uid: self.uid.clone(),
            name: self.name.clone(),
            node: self.name.clone(),
            container: self.living.is_read.then(|| "engine".to_owned()),
            program: None,
            annotations,
            ready: !self.living.is_pending
                && self.unready_since(now).is_none()
                && self.machine.up(now).is_some()
                && !self.machine.is_silent()
                && self.machine.gets_ready()
                && !self.terminating
                && self.living.sidecar.is_ready(&self.living.limits)
                && !self.sidecar_crashes,
            terminating: self.terminating,
            crash_looping: self.container_back_at.is_some()
                || self.living.sidecar.ends_again()
                || self.sidecar_crashes,
            not_started: self.living.not_started(),
            outdated: self.outdated.clone(),
            deadly_probe: self.deadly_probe.clone(),
            operator: self.operator.clone(),
            leaving: self.leaving.clone(),
            phase_applied_by: self.applied_phase.as_ref().map(|_| "a tool".to_owned()),
            endpoint: self.endpoint(now),
            unserved_since: self
                .unready_since(now)
                .filter(|_| self.endpoint(now) == Ok(Endpoint::NotReady))
                .map(Time),
            update: Ok(self.living.lacks()),
            ahead: self.living.ahead(),
            undeletable: self.living.why_it_is_not_deleted(),
            unchangeable: self.living.why_it_is_not_changed(),
            // Only the ledger says what is to be set back.
            unreturnable: None,
            room: Ok(self.living.why_it_would_not_fit()),
            claim_uids: Ok(self.living.claim_uids()),
            live: self.living.observe(self.container_back_at.is_some() || self.lacks_its_secret()),
            ignores_change: false,
            config_from: vec![],
            sources: self.sources.clone(),
            manager: self.manager(now),
        }
    }
}
