//! One plan in the making: the working copy of the ledger, and what was decided so far.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::blocker::{Blocker, Check};
use super::lookup::{Lookup, Names};
use super::rules::{Evaluation, FailedSets};
use super::view::View;
use super::{
    Action, Change, Code, Ending, Event, Ledger, Outcome, Plan, Pod, Policy, Reason, Restart,
    Snapshot, Waiting,
};
use stayput_api::Desired;

/// While a node is on its way, what is waited for comes within milliseconds, in milliseconds.
pub(super) const SOON: u64 = 100;
/// While something outside has to change first, in milliseconds.
pub(super) const LATER: u64 = 1_000;
/// While nothing is going on, in milliseconds: a minute, and longer where there are many pods, so
/// that looking at all of them stays a trickle.
const fn at_rest_of(pods: usize) -> u64 {
    60_000 + 30 * pods as u64
}

/// What stops are judged by, once it is asked for.
#[derive(Default)]
pub(super) struct Stops<'a> {
    pub(super) pass: OnceCell<Result<Evaluation<'a>, Blocker>>,
    pub(super) sets: OnceCell<FailedSets<'a>>,
    /// Whether a zone that goes as a whole can be stopped as a whole.
    pub(super) zone: OnceCell<Check>,
}

/// One plan in the making.
pub(super) struct Planner<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) policy: &'a Policy,
    pub(super) view: View<'a>,
    /// The ledger as it shall be; copied once something in it changes.
    pub(super) ledger: Cow<'a, Ledger>,
    /// For the cluster as a whole; several members may ask for the same.
    shared: Vec<Action>,
    /// What stops are judged by in this plan, looked at once: a plan that changes the ledger does
    /// nothing else.
    pub(super) stops: Stops<'a>,
    requests: Vec<Action>,
    patches: BTreeMap<String, BTreeMap<String, Change>>,
    events: Vec<Event>,
    /// By uid.
    waiting: Lookup<'a, Waiting>,
    /// What the cluster as a whole waits for.
    waiting_all: Option<Waiting>,
    requeue_after: u64,
}

impl<'a> Planner<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, policy: &'a Policy) -> Self {
        Self {
            snapshot,
            policy,
            view: View::new(snapshot),
            ledger: Cow::Borrowed(&snapshot.ledger),
            shared: Vec::new(),
            stops: Stops::default(),
            requests: Vec::new(),
            patches: BTreeMap::new(),
            events: Vec::new(),
            waiting: Lookup::default(),
            waiting_all: None,
            requeue_after: at_rest_of(snapshot.pods.len()),
        }
    }

    /// Adds something to do. It is dropped if this plan changes the ledger, and decided anew.
    pub(super) fn act(&mut self, action: Action) {
        self.again_within(SOON);
        if action.pod().is_some() {
            self.requests.push(action);
        } else if !self.shared.contains(&action) {
            self.shared.push(action);
        }
    }

    /// Says why nothing is done for a pod. The first reason stands.
    pub(super) fn wait(&mut self, uid: &str, code: Code, message: impl Into<String>) {
        let Some(pod) = self.view.pod(uid) else { return };
        self.again_within(match (code.blocks(), self.ledger.restart.is_some()) {
            (true, _) => LATER,
            (false, true) => SOON,
            (false, false) => at_rest_of(self.snapshot.pods.len()),
        });
        self.waiting.entry(&pod.uid).or_insert_with(|| Waiting {
            pod: Some(pod.uid.clone()),
            node: Some(pod.node.clone()),
            code,
            message: message.into(),
        });
    }

    /// As [`Self::wait`], for what a rule said.
    pub(super) fn refused(&mut self, uid: &str, refusal: Blocker) {
        self.wait(uid, refusal.code, refusal.message);
    }

    /// Says what the cluster as a whole waits for. The first reason stands.
    pub(super) fn wait_all(&mut self, code: Code, message: impl Into<String>) {
        self.again_within(LATER);
        self.waiting_all.get_or_insert_with(|| Waiting {
            pod: None,
            node: None,
            code,
            message: message.into(),
        });
    }

    /// Tells an event. One that comes without a change of the ledger comes again with every plan,
    /// and is told once by whoever carries plans out.
    pub(super) fn tell(&mut self, pod: Option<&str>, reason: Reason, message: impl Into<String>) {
        let pod = pod.map(str::to_owned);
        self.events.push(Event { pod, reason, message: message.into() });
    }

    /// Looks again in at most this many milliseconds.
    pub(super) fn again_within(&mut self, milliseconds: u64) {
        self.requeue_after = self.requeue_after.min(milliseconds);
    }

    /// Changes annotations of a pod, on the condition that they are as seen.
    pub(super) fn annotate(&mut self, uid: &str, wanted: &[(&str, Option<String>)]) {
        let Some(pod) = self.view.pod(uid) else { return };
        let changes: BTreeMap<String, Change> = wanted
            .iter()
            .filter(|(key, wanted)| pod.annotations.get(*key) != wanted.as_ref())
            .map(|(key, wanted)| {
                let seen = pod.annotations.get(*key).cloned();
                ((*key).to_owned(), Change { seen, wanted: wanted.clone() })
            })
            .collect();
        if changes.is_empty() {
            return;
        }
        self.again_within(SOON);
        // One patch for a pod: two would meet each other's preconditions.
        self.patches.entry(uid.to_owned()).or_default().extend(changes);
    }

    /// No further node is stopped; the restart ends so when those under way are done. The first
    /// ending stands.
    pub(super) fn end_with(&mut self, outcome: Outcome, reason: impl Into<String>) {
        if self.ledger.restart.as_ref().is_some_and(|restart| restart.ending.is_none())
            && let Some(restart) = &mut self.ledger.to_mut().restart
        {
            restart.ending = Some(Ending { outcome, reason: reason.into() });
        }
    }

    /// Whether the ledger was changed in this plan.
    pub(super) fn has_changed(&self) -> bool {
        match &self.ledger {
            Cow::Borrowed(_) => false,
            Cow::Owned(ledger) => *ledger != self.snapshot.ledger,
        }
    }

    /// The restart under way, as it is now: what is written to the ledger later is not in it.
    pub(super) fn restart(&self) -> Option<Cow<'a, Restart>> {
        match &self.ledger {
            Cow::Borrowed(ledger) => ledger.restart.as_ref().map(Cow::Borrowed),
            Cow::Owned(ledger) => ledger.restart.clone().map(Cow::Owned),
        }
    }

    /// The plan without what it would write on pods.
    pub(super) fn into_plan_without_patches(mut self) -> Plan {
        self.patches.clear();
        self.into_plan()
    }

    /// The plan.
    pub(super) fn into_plan(mut self) -> Plan {
        let mut actions = Vec::new();
        if self.has_changed() {
            let ledger = std::mem::take(self.ledger.to_mut());
            actions.push(Action::WriteLedger(Box::new(ledger)));
            self.requeue_after = 0;
        } else {
            actions.append(&mut self.shared);
            let patches = std::mem::take(&mut self.patches);
            actions.extend(
                patches.into_iter().map(|(uid, changes)| Action::PatchPod { uid, changes }),
            );
            actions.append(&mut self.requests);
        }
        actions.extend(std::mem::take(&mut self.events).into_iter().map(Action::Tell));
        let waiting = self.everybody_else(&actions);
        Plan { actions, waiting, requeue_after: self.requeue_after }
    }

    /// What is waited for, without the pods something is done for, and with those nobody spoke of.
    fn everybody_else(&mut self, actions: &[Action]) -> Vec<Waiting> {
        let acted: Names<'_> = actions.iter().filter_map(Action::pod).collect();
        let recording = matches!(actions.first(), Some(Action::WriteLedger(_)));
        let under_way = self.snapshot.ledger.under_way();
        let under_way: Names<'_> = under_way.map(|member| member.pod_uid.as_str()).collect();
        let mut waiting: Vec<Waiting> = self.waiting_all.take().into_iter().collect();
        let mut told = std::mem::take(&mut self.waiting);
        waiting.reserve(self.snapshot.pods.len());
        for pod in self.view.pods().filter(|pod| !acted.contains(pod.uid.as_str())) {
            let said = if told.is_empty() { None } else { told.remove(pod.uid.as_str()) };
            waiting.push(said.unwrap_or_else(|| {
                let (code, message) = if recording {
                    (Code::Recording, "the next step is written down first".to_owned())
                } else if under_way.contains(pod.uid.as_str()) {
                    (Code::Barrier, "waits for what concerns all nodes".to_owned())
                } else {
                    at_rest(pod)
                };
                let (pod, node) = (Some(pod.uid.clone()), Some(pod.node.clone()));
                Waiting { pod, node, code, message }
            }));
        }
        waiting
    }
}

/// What is to be said of a pod that nothing was asked of.
fn at_rest(pod: &Pod) -> (Code, String) {
    match &pod.manager {
        Ok(manager) if manager.desired == Desired::Stopped => {
            let by = manager.last_request.as_ref().map_or("somebody", |last| last.by.as_str());
            (Code::KeptStopped, format!("{by} stopped it, and nobody has started it since"))
        }
        Ok(_) | Err(_) => (Code::Idle, "nothing was asked of it".into()),
    }
}
