//! Questions about a snapshot that the checks ask.

use std::collections::BTreeSet;

use super::updates;
use crate::{
    Color, Direction, Engine, KeptStopped, Manager, Member, MemberStep, Node, Outcome, Pod, Policy,
    Predicate, Restart, Share, Snapshot, Sources, StartDebt, annotation,
};
use stayput_api::ConfigChoice;
use stayput_api::{Desired, RequestKind, State};

pub(super) struct Input<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) policy: &'a Policy,
}

impl<'a> Input<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, policy: &'a Policy) -> Self {
        Self { snapshot, policy }
    }

    /// The predicates that are not evaluated, for this restart.
    pub(super) fn is_disabled(&self, predicate: Predicate) -> bool {
        let skipped = self.restart().map(|restart| &restart.request.skip_rules);
        let mut skipped = skipped.into_iter().flatten();
        self.policy.disabled.contains(predicate) || skipped.any(|name| name == predicate.name())
    }

    /// Whether the engine says that a primary is missing.
    pub(super) fn is_red(&self) -> bool {
        let health = self.engine().and_then(|engine| engine.health.as_ref().ok());
        health.is_some_and(|health| health.color == Color::Red)
    }

    /// A gate that does not let this restart stop a node: its own, or one after the restart before.
    pub(super) fn closed_gate(&self, id: &str) -> Option<&'a String> {
        let ended = self.snapshot.ledger.history.iter().rev().find(|entry| {
            (entry.nodes > 0 || entry.began.is_some()) && entry.outcome != Outcome::Superseded
        });
        let mut annotations = self.snapshot.cluster.annotations.iter();
        let is_closed = |(key, value): &(&String, &String)| {
            let is_after = key.starts_with("after.gate.stayput.dev/");
            (key.starts_with("gate.stayput.dev/") && *value != id)
                || (is_after && ended.is_some_and(|ended| ended.id != **value))
        };
        annotations.find(is_closed).map(|(key, _)| key)
    }

    pub(super) fn pod(&self, uid: &str) -> Option<&'a Pod> {
        self.snapshot.pods.iter().find(|pod| pod.uid == uid)
    }

    /// The manager's status, if it answers and belongs to this pod.
    pub(super) fn manager(&self, uid: &str) -> Option<&'a Manager> {
        let manager = self.pod(uid)?.manager.as_ref().ok()?;
        (manager.pod_uid.as_deref() == Some(uid)).then_some(manager)
    }

    pub(super) fn engine(&self) -> Option<&'a Engine> {
        self.snapshot.engine.as_ref().ok()
    }

    pub(super) fn node(&self, name: &str) -> Option<&'a Node> {
        self.engine()?.nodes.iter().find(|node| node.name == name)
    }

    pub(super) fn restart(&self) -> Option<&'a Restart> {
        self.snapshot.ledger.restart.as_ref()
    }

    pub(super) fn member(&self, uid: &str) -> Option<&'a Member> {
        self.restart()?.members.iter().find(|member| member.pod_uid == uid)
    }

    pub(super) fn kept_stopped(&self, uid: &str) -> Option<&'a KeptStopped> {
        self.snapshot.ledger.kept_stopped.iter().find(|entry| entry.pod_uid == uid)
    }

    /// Whether a person wants the node of this pod to be kept stopped.
    pub(super) fn is_to_be_stopped(&self, uid: &str) -> bool {
        let by_annotation = |pod: &Pod| {
            pod.annotations.get(annotation::STOPPED).is_some_and(|value| value == "true")
        };
        let by_spec = |pod: &Pod| self.snapshot.cluster.stopped.contains(&pod.node);
        self.pod(uid).is_some_and(|pod| by_annotation(pod) || by_spec(pod))
    }

    pub(super) fn start_debt(&self, uid: &str) -> Option<&'a StartDebt> {
        self.snapshot.ledger.debts.start.iter().find(|debt| debt.pod_uid == uid)
    }

    /// Whether a start is owed that every node waits for: for a phase.
    pub(super) fn is_start_waited_for(&self, debt: &StartDebt) -> bool {
        debt.since.is_none_or(|at| self.snapshot.now.since(at) < self.policy.phase_timeout)
    }

    /// The checksum a pod has to have mounted, as its sources are now.
    pub(super) fn wanted_config(pod: &Pod) -> Option<String> {
        match &pod.sources {
            Sources::Checksum(checksum) => Some(checksum.clone()),
            Sources::Unknown(_) => {
                pod.manager.as_ref().ok().and_then(|manager| manager.mounted.clone())
            }
            Sources::Absent(_) => None,
        }
    }

    /// How many nodes may be down at once because of us, without the pods that are kept stopped.
    pub(super) fn budget(&self) -> usize {
        let kept = |pod: &&Pod| self.kept_stopped(&pod.uid).is_none();
        match self.policy.max_unavailable {
            Share::Nodes(nodes) => usize::try_from(nodes).unwrap(),
            Share::Percent(percent) => {
                let pods = self.snapshot.pods.iter().filter(kept).count();
                (pods * usize::from(percent) / 100).max(1)
            }
        }
    }

    /// No node of the pod's set serves, and the pod's engine has ended: by the status of their
    /// managers and the node list of the cluster, if it is known.
    pub(super) fn whole_set_failed(&self, pod: &Pod) -> bool {
        let stem = |pod: &Pod| match pod.name.rsplit_once('-') {
            Some((stem, ordinal)) if ordinal.chars().all(|one| one.is_ascii_digit()) => {
                stem.to_owned()
            }
            Some(_) | None => pod.name.clone(),
        };
        let set = stem(pod);
        let mut of_set = self.snapshot.pods.iter().filter(|pod| stem(pod) == set);
        let is_down = |pod: &Pod| {
            let ended = match &pod.manager {
                Ok(manager) => !matches!(manager.state, State::Running | State::Stuck),
                // While its container is made anew, no engine runs in it.
                Err(_) => {
                    pod.crash_looping
                        || pod.live.as_ref().is_some_and(|live| live.waiting.is_some())
                }
            };
            ended && !pod.ready && self.node(&pod.node).is_none()
        };
        let has_ended = |pod: &Pod| {
            let manager = pod.manager.as_ref();
            pod.crash_looping || manager.is_ok_and(|manager| manager.last_exit.is_some())
        };
        has_ended(pod) && of_set.all(is_down)
    }

    /// Whether a coordinated restart only goes forward, and a phase has passed since its nodes could be
    /// started; or, while they are being stopped, since it took the place of another one.
    pub(super) fn is_late_forward(&self, restart: &Restart) -> bool {
        let since = restart.goes_on_since();
        restart.direction == Direction::Forward
            && since.is_some_and(|at| self.snapshot.now.since(at) >= self.policy.phase_timeout)
    }

    /// Whether the manager of a node under way does not answer now, a phase after its slot or its abort.
    pub(super) fn is_silent_for_long(&self, member: &Member) -> bool {
        let uid = self.successor(member).map_or(&member.pod_uid, |pod| &pod.uid);
        let is_late = self.snapshot.now.since(member.since) >= self.policy.phase_timeout;
        is_late && self.manager(uid).is_none()
    }

    /// Whether the engine that answers is the one that the ledger knows.
    pub(super) fn is_own_engine(&self) -> bool {
        let known = self.snapshot.ledger.cluster_uuid.as_ref();
        self.engine().is_some_and(|engine| known.is_none_or(|uuid| *uuid == engine.cluster_uuid))
    }

    /// Whether the cluster lists the process that the member had when it took its slot.
    pub(super) fn lists_old_process(&self, member: &Member) -> bool {
        let node = self.node(&member.node).filter(|_| self.is_own_engine());
        node.is_some_and(|node| member.ephemeral_id.as_ref() == Some(&node.ephemeral_id))
    }

    /// Whether its engine runs and is in the cluster, whatever the kubelet says of the pod.
    pub(super) fn serves(&self, pod: &Pod) -> bool {
        let runs = pod.manager.as_ref().is_ok_and(|manager| manager.state == State::Running);
        let node = self.node(&pod.node);
        runs && !pod.terminating && node.is_some_and(|node| !node.roles_unknown)
    }

    /// Whether its engine was started after the restart was requested, serves, and runs on the wanted config.
    pub(super) fn was_started_since(&self, restart: &Restart, uid: &str) -> bool {
        let pod = self.pod(uid).filter(|pod| self.serves(pod));
        let run = self.manager(uid).filter(|manager| manager.is_ready());
        let run = run.and_then(|manager| manager.run.as_ref());
        let is_newer = run.and_then(|run| run.started).is_some_and(|at| at > restart.started);
        let runs_on = run.and_then(|run| run.checksum.clone());
        is_newer
            && restart.request.strategy != crate::Strategy::Coordinated
            && pod.is_some_and(|pod| pod.ignores_change || Self::wanted_config(pod) == runs_on)
    }

    /// Whether a snapshot that began less than six hours ago is being taken of its shards.
    pub(super) fn is_being_read(&self, pod: &Pod) -> bool {
        let running = self.node(&pod.node).and_then(|node| node.snapshot.as_ref());
        let is_young = |since| self.snapshot.now.since(since) < 6 * 60 * 60 * 1000;
        self.serves(pod) && running.is_some_and(|running| is_young(running.since))
    }

    /// Names of the nodes that are in the cluster and have not said what they are: they may hang.
    pub(super) fn silent(&self) -> impl Iterator<Item = &'a str> {
        let nodes = self.engine().into_iter().flat_map(|engine| &engine.nodes);
        nodes.filter(|node| node.roles_unknown).map(|node| node.name.as_str())
    }

    /// How many of these hold a slot and were in the cluster when they took it. The others are not
    /// down because of us.
    pub(super) fn taken_down<'b>(members: impl Iterator<Item = &'b Member>) -> usize {
        members.filter(|member| member.is_under_way() && member.ephemeral_id.is_some()).count()
    }

    /// Names of the nodes that are down, or may go down any moment, because of us.
    pub(super) fn down_by_us(&self) -> BTreeSet<String> {
        let mut down = BTreeSet::new();
        for member in self.restart().map(|restart| &restart.members[..]).unwrap_or_default() {
            if member.is_under_way() && !self.is_back(member) {
                down.insert(member.node.clone());
            }
        }
        for entry in &self.snapshot.ledger.kept_stopped {
            down.insert(entry.node.clone());
        }
        for debt in &self.snapshot.ledger.debts.start {
            down.insert(debt.node.clone());
        }
        down
    }

    /// Nobody is left who could be paid.
    pub(super) fn is_deleted_with_its_pods(&self) -> bool {
        self.snapshot.cluster.deleting && self.snapshot.pods.is_empty()
    }

    /// The pod that replaced the member's pod, if that is gone.
    pub(super) fn successor(&self, member: &Member) -> Option<&'a Pod> {
        let in_its_place = |pod: &&Pod| pod.node == member.node && pod.uid != member.pod_uid;
        let gone = self.pod(&member.pod_uid).is_none();
        self.snapshot.pods.iter().find(in_its_place).filter(|_| gone)
    }

    /// A new process of the member is proven, and ready: it has joined, and its manager reports that it
    /// runs.
    pub(super) fn is_back(&self, member: &Member) -> bool {
        let uid = self.successor(member).map_or(&member.pod_uid, |pod| &pod.uid);
        let runs = |manager: &Manager| manager.state == State::Running;
        self.has_joined(member) && self.manager(uid).is_some_and(runs)
    }

    /// A new process of the member is proven: it is listed with a new ephemeral id, and its manager
    /// reports that it was begun after our start or in a new pod.
    pub(super) fn has_joined(&self, member: &Member) -> bool {
        let listed = self
            .node(&member.node)
            .is_some_and(|node| Some(&node.ephemeral_id) != member.ephemeral_id.as_ref());
        let (uid, least) = match self.successor(member) {
            Some(pod) => (&pod.uid, 0),
            None => (&member.pod_uid, member.start_sequence),
        };
        let was_begun = |manager: &Manager| {
            matches!(manager.state, State::Starting | State::Running) && manager.sequence >= least
        };
        listed && self.manager(uid).is_some_and(was_begun)
    }

    /// Whether the member was proven to be back before: its pod has changed, and the new label, which is
    /// written only after the proof.
    pub(super) fn was_proven(&self, member: &Member) -> bool {
        let fixed = member.update.as_ref().filter(|one| one.update.from != one.update.to);
        let pod = self.pod(&member.pod_uid);
        pod.zip(fixed).is_some_and(|(pod, fixed)| {
            let is_labelled =
                pod.live.as_ref().is_some_and(|live| live.revision == fixed.update.to);
            is_labelled && updates::why_not_carried_out(pod, member).is_none()
        })
    }

    /// Checks that the member is in the state that `done` means.
    pub(super) fn check_proven(&self, member: &Member) -> Result<(), String> {
        if self.was_proven(member) {
            return Ok(());
        }
        let node = &member.node;
        let successor = self.successor(member);
        let uid = successor.map_or(&member.pod_uid, |pod| &pod.uid);
        let Some(manager) = self.manager(uid) else {
            return Err(format!("{node} is done and its manager is unknown"));
        };
        let Some(run) = manager.run.as_ref().filter(|_| manager.state == State::Running) else {
            return Err(format!("{node} is done and does not run"));
        };
        // A new pod has its own sources.
        let expected = match successor {
            Some(pod) => Self::wanted_config(pod),
            None => member.expected.clone(),
        };
        if expected.is_some() && run.checksum != expected {
            return Err(format!("{node} is done on {:?}, not {expected:?}", run.checksum));
        }
        // With the content that is expected, it does not matter from which copy it was read.
        if expected.is_none() && run.config != ConfigChoice::Mounted {
            return Err(format!("{node} is done on the last good config"));
        }
        if !self.is_back(member) {
            return Err(format!("{node} is done and its new process is not listed"));
        }
        Ok(())
    }

    /// The manager has confirmed, durably, a start with this sequence or a higher one; or another
    /// client has sent a request since.
    pub(super) fn is_started(&self, uid: &str, sequence: u64) -> bool {
        let Some(manager) = self.manager(uid) else {
            return self.pod(uid).is_none();
        };
        let by_start = manager.sequence >= sequence
            && manager.durable
            && (manager.desired == Desired::Running
                || manager.last_request.as_ref().is_some_and(|last| {
                    last.kind == RequestKind::Start && last.accepted && last.sequence >= sequence
                }));
        let by_another = manager.last_request.as_ref().is_some_and(|last| {
            last.sequence == sequence && last.kind == RequestKind::Stop && last.accepted
        });
        by_start || by_another || manager.sequence > sequence
    }

    /// Whether the manager of a stopped member has started its engine by itself, on another config than ours.
    pub(super) fn runs_on_another(&self, member: &Member) -> bool {
        self.manager(&member.pod_uid).is_some_and(|manager| {
            let run = manager.run.as_ref();
            let last = manager.last_request.as_ref();
            manager.sequence == member.stop_sequence
                && last.is_some_and(|last| last.accepted && last.kind == RequestKind::Stop)
                && matches!(manager.state, State::Starting | State::Running)
                && member.expected.is_some()
                && run.is_some_and(|run| run.checksum != member.expected)
        })
    }

    /// Whether another pod is in the place of the member's pod, and the cluster lists a new process.
    pub(super) fn is_back_in_another_pod(&self, member: &Member) -> bool {
        let is_replaced = self.snapshot.pods.iter().any(|pod| pod.name == member.pod);
        self.pod(&member.pod_uid).is_none() && is_replaced && self.has_joined(member)
    }

    /// A stop of ours may have reached the manager: the slot was taken, and the manager does not
    /// report a lower sequence.
    pub(super) fn may_be_stopped(&self, member: &Member) -> bool {
        member.step != MemberStep::Scheduled
            && self
                .manager(&member.pod_uid)
                .is_none_or(|manager| manager.sequence >= member.stop_sequence)
    }
}
