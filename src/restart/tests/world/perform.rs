//! Carries out a plan's actions: one write or one request each, with the preconditions that the
//! executor sends.

use std::collections::BTreeMap;

use super::{Asked, Judgement, SimPod, Verdict, World};
use crate::{Action, Change, annotation, drain_request, start_request, stop_request};
use stayput_api::State;

/// The caller that the managers see in our requests.
pub(crate) const US: &str = "stayput-reconciler";

/// The action as a line of the page.
pub(crate) fn describe_action(action: &Action) -> String {
    match action {
        Action::WriteLedger(_) => "write the ledger".into(),
        Action::RecordEvent(event) => format!("event {}: {}", event.reason.as_str(), event.message),
        Action::AddFinalizer => "put the finalizer on".into(),
        Action::RemoveFinalizer => "take the finalizer off".into(),
        Action::ClaimTrigger { phase, request } => {
            format!("replace the phase {phase} by request {}", request.id)
        }
        Action::ClearAnnotation { key, value } => format!("remove {key}={value}"),
        Action::PatchPod { uid, changes } => {
            let describe = |(key, change): (&String, &Change)| {
                let short = key.rsplit('/').next().unwrap_or_default();
                match &change.wanted {
                    Some(wanted) => format!("{short}={wanted}"),
                    None => format!("no {short}"),
                }
            };
            format!("patch {uid}: {}", changes.iter().map(describe).collect::<Vec<_>>().join(", "))
        }
        Action::PatchMetadata { uid, annotations, .. }
            if annotations.contains_key(annotation::ENVIRONMENT) =>
        {
            format!("variables of {uid}: {}", values(annotations))
        }
        Action::PatchMetadata { uid, labels, annotations } => {
            let made_from = annotations.get(annotation::ACTUAL_REVISION).map(|change| {
                let revision = change.wanted.as_deref().unwrap_or("what its label says");
                format!("made from {revision}")
            });
            let label = (!labels.is_empty()).then(|| values(labels));
            let said: Vec<String> = label.into_iter().chain(made_from).collect();
            format!("label {uid}: {}", said.join(", "))
        }
        Action::PatchImages { uid, images } => format!("images of {uid}: {}", values(images)),
        Action::Resize { uid, resources } => format!("resize {uid}: {}", values(resources)),
        Action::DeletePod { uid } => format!("delete {uid}"),
        Action::Stop { uid, sequence, .. } => format!("stop {sequence} to {uid}"),
        Action::Drain { uid, sequence } => format!("drain {sequence} to {uid}"),
        Action::EndDrain { uid, sequence, drain, .. } => {
            format!("stop {sequence} to {uid} again, drain {drain} ms")
        }
        Action::Start { uid, sequence, checksum, config } => {
            let on = checksum.clone().unwrap_or_else(|| config.as_str().to_owned());
            format!("start {sequence} to {uid} on {on}")
        }
        Action::TightenAllocation { value, marker } => {
            format!("set allocation to {value}, marked {}", marker.restart)
        }
        Action::RestoreAllocation { before } => format!(
            "set allocation back to {}",
            before
                .transient
                .as_ref()
                .or(before.persistent.as_ref())
                .map_or("unset", String::as_str)
        ),
        Action::Flush { node } => format!("flush for {node}"),
        Action::PutRecord { node_id, reason, allocation_delay } => {
            let minutes = allocation_delay / 60_000;
            format!("announce {node_id} for {reason}, for {minutes} minutes")
        }
        Action::DeleteRecord { node_id } => format!("delete the record of {node_id}"),
        Action::ExcludeVoter { node } => format!("exclude {node} from voting"),
        Action::ClearVotingExclusions => "remove all voting exclusions".into(),
        Action::ExcludeNames { persistent, transient } => {
            let set_to = |level: &str, value: &Option<Option<String>>| match value {
                None => String::new(),
                Some(None) => format!(" {level}=unset"),
                Some(Some(value)) => format!(" {level}=\"{value}\""),
            };
            format!("set{}{}", set_to("persistent", persistent), set_to("transient", transient))
        }
        Action::RemoveNode { set, replicas } => format!("scale {set} {replicas}"),
        Action::RemoveNodeSet { set } => format!("remove {set}"),
    }
}

/// The values that changes bring.
fn values(changes: &BTreeMap<String, Change>) -> String {
    let value = |(key, change): (&String, &Change)| {
        format!("{key}={}", change.wanted.as_deref().unwrap_or("-"))
    };
    changes.iter().map(value).collect::<Vec<_>>().join(", ")
}

impl World {
    /// The version of the object that the action names, if it names one: it is refused on another.
    pub(crate) fn named_version(&self, action: &Action) -> Option<u64> {
        let versions = || self.pods.iter().map(|pod| (&pod.uid, pod.living.version));
        let of_pod = |uid| versions().find(|(of, _)| *of == uid).map(|(_, version)| version);
        match action {
            Action::ClaimTrigger { .. } => Some(self.object.version),
            Action::PatchImages { uid, .. }
            | Action::PatchMetadata { uid, .. }
            | Action::Resize { uid, .. }
            | Action::DeletePod { uid } => of_pod(uid),
            _ => None,
        }
    }

    /// The action arrives late.
    pub(crate) fn carry_out_at(&mut self, at: u64, action: Action) {
        let (count, version) = (self.fresh(), self.named_version(&action));
        self.late.insert((at, count), (version, action));
    }

    /// Does what the executor does; the driver handles ledger and flush. Returns whether the action
    /// was accepted.
    pub(crate) fn carry_out(&mut self, action: &Action) -> bool {
        let now = self.now;
        let done = match action {
            Action::WriteLedger(_) | Action::Flush { .. } => true,
            Action::RecordEvent(event) => {
                self.events.push((now, event.clone()));
                true
            }
            Action::AddFinalizer => self.object.add_finalizer(),
            Action::RemoveFinalizer => {
                self.object.touch().finalizer = false;
                true
            }
            Action::ClaimTrigger { phase, request } => {
                let there = &self.object.cluster.annotations;
                if there.get(annotation::PHASE) != Some(phase) || !self.object.add_finalizer() {
                    return false;
                }
                let text = serde_json::to_string(request).unwrap();
                let annotations = &mut self.object.touch().annotations;
                annotations.remove(annotation::PHASE);
                annotations.insert(annotation::REQUEST.into(), text);
                true
            }
            Action::ClearAnnotation { key, value } => {
                if self.object.cluster.annotations.get(key) != Some(value) {
                    return false;
                }
                self.object.touch().annotations.remove(key);
                true
            }
            Action::PatchPod { uid, changes } => self.patch(uid, changes),
            Action::PatchMetadata { uid, labels, annotations } => {
                let known = self.templates.clone();
                self.living(uid, |pod, now| pod.relabel(labels, annotations, &known, now))
            }
            Action::PatchImages { uid, images } => {
                self.living(uid, |pod, now| pod.living.patch_images(images, now))
            }
            Action::Resize { uid, resources } => {
                self.living(uid, |pod, _| pod.living.resize(resources))
            }
            Action::DeletePod { uid } => self.living(uid, |pod, now| {
                pod.is_deleted(now);
                true
            }),
            Action::Stop { uid, sequence, drain, resume, exit }
            | Action::EndDrain { uid, sequence, drain, resume, exit } => {
                let request = stop_request(uid, *sequence, *drain, resume.as_ref(), *exit);
                self.ask(uid, Asked::Stop(request), US)
            }
            Action::Drain { uid, sequence } => {
                // As the executor: nothing waits for it, whatever becomes of it.
                self.ask(uid, Asked::Drain(drain_request(uid, *sequence)), US);
                true
            }
            Action::Start { uid, sequence, checksum, config } => {
                let request = start_request(uid, *sequence, checksum.as_deref(), *config);
                self.ask(uid, Asked::Start(request), US)
            }
            Action::TightenAllocation { value, marker } => {
                self.engine.tighten(value, marker.clone())
            }
            Action::RestoreAllocation { before } => self.engine.restore(before),
            Action::PutRecord { node_id, reason, .. } => self.engine.announce(now, node_id, reason),
            Action::DeleteRecord { node_id } => self.engine.forget(node_id),
            Action::ExcludeVoter { node } => self.engine.exclude(node),
            Action::ClearVotingExclusions => self.engine.clear_exclusions(),
            Action::ExcludeNames { .. }
            | Action::RemoveNode { .. }
            | Action::RemoveNodeSet { .. } => panic!("there are no node sets: {action:?}"),
        };
        self.settle();
        done
    }

    fn living(&mut self, uid: &str, change: impl FnOnce(&mut SimPod, u64) -> bool) -> bool {
        let now = self.now;
        self.by_uid(uid).filter(|pod| !pod.gone).is_some_and(|pod| change(pod, now))
    }

    fn patch(&mut self, uid: &str, changes: &BTreeMap<String, Change>) -> bool {
        let (now, is_late) = (self.now, self.object.is_gone());
        let Some(pod) = self.by_uid(uid).filter(|pod| !pod.gone) else { return false };
        let has_changed =
            |(key, change): (&String, &Change)| pod.annotations.get(key) != change.seen.as_ref();
        pod.has_refused |= pod.refuses_patches;
        if pod.refuses_patches || changes.iter().any(has_changed) {
            return false;
        }
        for (key, change) in changes {
            match &change.wanted {
                Some(wanted) => pod.annotations.insert(key.clone(), wanted.clone()),
                None => pod.annotations.remove(key),
            };
        }
        pod.was_patched(now);
        pod.patched_late |= is_late;
        true
    }

    /// A person writes or removes an annotation of a pod.
    pub(crate) fn annotate(&mut self, pod: &str, key: &str, value: Option<&str>) {
        let now = self.now;
        let pod = self.pod(pod);
        match value {
            Some(value) => pod.annotations.insert(key.to_owned(), value.to_owned()),
            None => pod.annotations.remove(key),
        };
        pod.was_patched(now);
    }

    /// A request to the manager of a pod.
    pub(crate) fn ask(&mut self, uid: &str, asked: Asked, by: &str) -> bool {
        let now = self.now;
        let Some(pod) = self.by_uid(uid).filter(|pod| !pod.gone) else { return false };
        if pod.living.is_without_container() {
            return false;
        }
        let before = pod.machine.life().state();
        let verdict = pod.machine.asks(now, asked.clone(), by);
        if matches!(verdict, Verdict::Accepted) {
            // Its readiness changes.
            pod.living.version += 1;
        }
        let after = pod.machine.life().state();
        let name = pod.name.clone();
        self.note(uid, name, &asked, by, verdict.clone(), before != after);
        matches!(verdict, Verdict::Accepted | Verdict::Again)
    }

    fn note(
        &mut self,
        uid: &str,
        pod: String,
        asked: &Asked,
        by: &str,
        verdict: Verdict,
        took_effect: bool,
    ) {
        let (kind, sequence) = match asked {
            Asked::Stop(request) => ("stop", request.sequence),
            Asked::Start(request) => ("start", request.sequence),
            Asked::Drain(request) => ("drain", request.sequence),
        };
        let outcome = match &verdict {
            Verdict::Accepted => "accepted".into(),
            Verdict::Again if kind == "drain" => "accepted".into(),
            Verdict::Again => "accepted before".into(),
            Verdict::Refused(code) => format!("refused, {}", code.as_str()),
            Verdict::Waits => "no answer".into(),
            Verdict::Lost => "not delivered".into(),
        };
        let number = sequence.map(|sequence| format!(" {sequence}")).unwrap_or_default();
        let whose = if by == US { String::new() } else { format!(" by {by}") };
        self.happened("ask", format!("{pod} {kind}{number}{whose}: {outcome}"));
        let uid = uid.to_owned();
        let by = by.to_owned();
        if kind == "drain" {
            // It decides nothing.
            return;
        }
        let is_stop = kind == "stop";
        self.judged.push(Judgement { uid, pod, is_stop, sequence, by, verdict, took_effect });
    }

    /// A frozen manager continues.
    pub(crate) fn thaw(&mut self, pod: &str) {
        let now = self.now;
        let pod = self.pod(pod);
        let (uid, name) = (pod.uid.clone(), pod.name.clone());
        let before = pod.machine.life().state();
        let judged = pod.machine.thaw(now);
        for (asked, by, verdict) in judged {
            // Of several that waited, the state machine reports which one changed the state.
            let is_stop = matches!(asked, Asked::Stop(_));
            let took_effect = verdict == Verdict::Accepted && is_stop == (before == State::Running);
            self.note(&uid, name.clone(), &asked, &by, verdict, took_effect);
        }
        self.settle();
    }
}
