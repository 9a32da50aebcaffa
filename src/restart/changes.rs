//! The result of one step of a plan, and of one rule: plain data, nothing is done yet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::context::Context;
use crate::index::Marks;
use crate::ledger::{LedgerChange, RestartChange};
use crate::{
    Action, Change, Code, Ending, Event, Ledger, Member, Outcome, Plan, Pod, Reason, Restart,
    Unknown, Waiting,
};
use stayput_api::Desired;

/// Changes, actions and reports of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Changes of the ledger, in their order. If a plan has any, it does nothing else.
    pub(super) ledger: Vec<LedgerChange>,
    pub(super) actions: Vec<Action>,
    /// Changes of pod annotations, by uid. Each applies only if the annotation has the value that
    /// was read.
    pub(super) patches: Vec<(String, BTreeMap<String, Change>)>,
    pub(super) events: Vec<Event>,
    pub(super) waits: Vec<Wait>,
    /// Plan again after at most this many milliseconds.
    pub(super) requeue: Option<u64>,
}

/// Why nothing is done for a pod, or for the cluster as a whole. The first reason a plan is given
/// for a pod is the one it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    /// Uid of the pod; absent for the cluster as a whole.
    pub(super) pod: Option<String>,
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
}

/// The whole result of a step that is refused: reasons to wait.
pub(super) type Waits = Vec<Wait>;

impl Wait {
    pub(super) fn pod(uid: &str, blocker: Blocker) -> Self {
        Self { pod: Some(uid.to_owned()), code: blocker.code, message: blocker.message.into() }
    }

    pub(super) fn cluster(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { pod: None, code, message: message.into() }
    }
}

impl From<Waits> for Changes {
    fn from(waits: Waits) -> Self {
        Self { waits, ..Self::default() }
    }
}

impl Changes {
    /// Changes with one change of the ledger.
    pub(super) fn of_ledger(change: impl Into<LedgerChange>) -> Self {
        Self { ledger: vec![change.into()], ..Self::default() }
    }

    /// Changes with one action.
    pub(super) fn action(action: Action) -> Self {
        Self { actions: vec![action], ..Self::default() }
    }

    /// Adds the result of another step, or of another part of this one.
    pub(super) fn merge(&mut self, other: Self) {
        self.ledger.extend(other.ledger);
        self.actions.extend(other.actions);
        self.patches.extend(other.patches);
        self.events.extend(other.events);
        self.waits.extend(other.waits);
        self.requeue = match (self.requeue, other.requeue) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    pub(super) fn change(&mut self, change: impl Into<LedgerChange>) {
        self.ledger.push(change.into());
    }

    /// Replaces the entry of the member at this place.
    pub(super) fn set_member(&mut self, index: usize, member: Member) {
        self.change(RestartChange::SetMember { index, member: Box::new(member) });
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Reports that nothing is done for a pod.
    pub(super) fn wait(&mut self, uid: &str, code: Code, message: impl Into<Cow<'static, str>>) {
        self.waits.push(Wait { pod: Some(uid.to_owned()), code, message: message.into() });
    }

    /// Records the rule that holds the pod back: [`Self::wait`] with its code and message.
    pub(super) fn block(&mut self, uid: &str, blocker: Blocker) {
        self.waits.push(Wait::pod(uid, blocker));
    }

    /// Records one rule that holds several pods back.
    pub(super) fn block_each<'p>(
        &mut self,
        pods: impl IntoIterator<Item = &'p Pod>,
        blocker: &Blocker,
    ) {
        pods.into_iter().for_each(|pod| self.block(&pod.uid, blocker.clone()));
    }

    /// Reports why the cluster as a whole waits.
    pub(super) fn wait_all(&mut self, code: Code, message: impl Into<Cow<'static, str>>) {
        self.waits.push(Wait::cluster(code, message));
    }

    /// Reports an event. Without a change of the ledger every following plan contains it again; the
    /// caller that carries plans out must record it only once.
    pub(super) fn event(&mut self, pod: Option<&str>, reason: Reason, message: impl Into<String>) {
        let pod = pod.map(str::to_owned);
        self.events.push(Event { pod, reason, message: message.into() });
    }

    /// Changes annotations of a pod, if one differs from what is wanted. The patch contains those
    /// that stay, too: it is not carried out if one of them has changed by the time it arrives.
    pub(super) fn annotate<'k>(
        &mut self,
        pod: &Pod,
        wanted: impl IntoIterator<Item = (&'k str, Option<String>)>,
    ) {
        let change = |(key, wanted): (&str, Option<String>)| {
            (key.to_owned(), Change { seen: pod.annotations.get(key).cloned(), wanted })
        };
        let changes: BTreeMap<String, Change> = wanted.into_iter().map(change).collect();
        if changes.values().any(|change| change.seen != change.wanted) {
            self.patches.push((pod.uid.clone(), changes));
        }
    }

    /// Lets no further node be stopped. The restart ends with this outcome when the members under way
    /// are done.
    pub(super) fn end_with(&mut self, outcome: Outcome, reason: impl Into<String>) {
        self.change(RestartChange::EndWith(Ending { outcome, reason: reason.into() }));
    }

    /// True if these changes end the restart under way.
    pub(super) fn ends_restart(&self) -> bool {
        self.ledger
            .iter()
            .any(|change| matches!(change, LedgerChange::Restart(RestartChange::EndWith(_))))
    }
}

/// Why a rule does not allow a stop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Blocker {
    pub(super) code: Code,
    /// The obstacle and the remedy, for people.
    pub(super) message: String,
}

impl Blocker {
    /// The blocker of a rule that depends on an engine that does not answer.
    pub(super) fn engine_unreachable(unknown: &Unknown) -> Self {
        Self { code: Code::EngineUnreachable, message: unknown.message.clone() }
    }
}

/// The result of a rule: passed, or why not.
pub(super) type Check = Result<(), Blocker>;

/// A rule that does not pass.
pub(super) fn refuse(code: Code, message: impl Into<String>) -> Check {
    Err(Blocker { code, message: message.into() })
}

/// Delay until the next plan while a node is being restarted, in milliseconds: the next change
/// comes soon.
const SOON: u64 = 100;
/// Delay until the next plan while something outside has to change first, in milliseconds.
pub(super) const LATER: u64 = 1_000;

/// Delay until the next plan while nothing is under way, in milliseconds: a minute, and more if there
/// are many pods, so that planning for all of them costs little.
const fn at_rest_of(pods: usize) -> u64 {
    60_000 + 30 * pods as u64
}

/// One step of a plan.
pub(super) struct PlanStep {
    pub(super) name: &'static str,
    pub(super) run: Run,
}

impl std::fmt::Debug for PlanStep {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// How often a step is called. Each call gets the ledger as the calls before have changed it.
pub(super) enum Run {
    Once(fn(&Context<'_>, &Ledger) -> Changes),
    /// For every member, which also gets the restart as it was before the first of them.
    EachMember(fn(&Context<'_>, &Ledger, &Restart, usize, &Member) -> Changes),
    EachPod(fn(&Context<'_>, &Ledger, &Pod, &Marks<'_>) -> Changes),
}

/// The results of the steps so far.
pub(super) struct Draft<'c, 'a> {
    context: &'c Context<'a>,
    /// The ledger, copied at the first change.
    ledger: Cow<'a, Ledger>,
    /// Actions on the cluster as a whole; several members may need the same one.
    shared: Vec<Action>,
    /// Actions on pods.
    requests: Vec<Action>,
    /// Patch of each pod, by its place among all pods; empty until the first is patched. Only one patch
    /// for a pod: the first of two would make the precondition of the second false.
    patches: Vec<Option<BTreeMap<String, Change>>>,
    events: Vec<Event>,
    /// Reason of each pod to wait, by its place among all pods; empty until the first has one.
    waiting: Vec<Option<(Code, Cow<'static, str>)>>,
    waiting_all: Option<Waiting>,
    requeue_after: u64,
}

impl<'c, 'a> Draft<'c, 'a> {
    pub(super) fn new(context: &'c Context<'a>) -> Self {
        let snapshot = context.snapshot;
        Self {
            context,
            ledger: Cow::Borrowed(&snapshot.ledger),
            shared: Vec::new(),
            requests: Vec::new(),
            patches: Vec::new(),
            events: Vec::new(),
            waiting: Vec::new(),
            waiting_all: None,
            // Nothing is requested before there is a status, which follows this plan.
            requeue_after: if snapshot.cluster.has_status {
                at_rest_of(snapshot.pods.len())
            } else {
                LATER
            },
        }
    }

    pub(super) fn context(&self) -> &'c Context<'a> {
        self.context
    }

    /// The ledger as the steps so far have changed it.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Calls a step.
    pub(super) fn run(&mut self, step: &PlanStep) {
        match step.run {
            Run::Once(step) => self.apply(step(self.context, &self.ledger)),
            Run::EachPod(step) => {
                for (pod, marks) in self.context.index.marked_pods() {
                    self.apply(step(self.context, &self.ledger, pod, marks));
                }
            }
            Run::EachMember(step) => {
                // A ledger that was copied already is as it was until a member changes it.
                let mut before = match &self.ledger {
                    Cow::Borrowed(ledger) => ledger.restart.as_ref().map(Cow::Borrowed),
                    Cow::Owned(_) => None,
                };
                let members = self.ledger.restart.as_ref().map_or(0, |one| one.members.len());
                for index in 0..members {
                    let restart = before.as_deref().or(self.ledger.restart.as_ref());
                    let Some(restart) = restart else { return };
                    let member = &restart.members[index];
                    let changes = step(self.context, &self.ledger, restart, index, member);
                    if before.is_none() && !changes.ledger.is_empty() {
                        before = self.ledger.restart.clone().map(Cow::Owned);
                    }
                    self.apply(changes);
                }
            }
        }
    }

    /// Adds the result of a step.
    pub(super) fn apply(&mut self, changes: Changes) {
        let Changes { ledger, actions, patches, events, waits, requeue } = changes;
        for change in ledger {
            change.apply(self.ledger.to_mut());
        }
        if !actions.is_empty() || !patches.is_empty() {
            self.requeue_within(SOON);
        }
        for action in actions {
            if action.pod().is_some() {
                self.requests.push(action);
            } else if !self.shared.contains(&action) {
                self.shared.push(action);
            }
        }
        for (uid, changes) in patches {
            self.patch(&uid, changes);
        }
        self.events.extend(events);
        for wait in waits {
            self.wait(wait);
        }
        if let Some(milliseconds) = requeue {
            self.requeue_within(milliseconds);
        }
    }

    /// Removes the patches of pods.
    pub(super) fn without_patches(mut self) -> Self {
        self.patches = Vec::new();
        self
    }

    /// The plan. If the ledger has changed, the plan only writes it: actions that need the new
    /// ledger follow in the next plan.
    pub(super) fn into_plan(mut self) -> Plan {
        let mut actions = Vec::new();
        if self.context.has_changed(&self.ledger) {
            let mut ledger = std::mem::take(self.ledger.to_mut());
            // Steps know members by their place; only now that may change.
            ledger.sort_members();
            actions.push(Action::WriteLedger(Box::new(ledger)));
            self.requeue_after = 0;
        } else {
            actions.append(&mut self.shared);
            actions.append(&mut self.requests);
            // Last: they show something to people, and there may be hundreds.
            let patches = std::mem::take(&mut self.patches).into_iter();
            actions.extend(self.context.index.pods().zip(patches).filter_map(|(pod, changes)| {
                Some(Action::PatchPod { uid: pod.uid.clone(), changes: changes? })
            }));
        }
        actions.extend(std::mem::take(&mut self.events).into_iter().map(Action::RecordEvent));
        let requeue_after = self.requeue_after;
        Plan { waiting: self.into_waiting(&actions), actions, requeue_after }
    }

    fn requeue_within(&mut self, milliseconds: u64) {
        self.requeue_after = self.requeue_after.min(milliseconds);
    }

    /// Adds changes of a pod's annotations.
    fn patch(&mut self, uid: &str, changes: BTreeMap<String, Change>) {
        let index = &self.context.index;
        let Some(place) = index.place(uid) else { return };
        if self.patches.is_empty() {
            self.patches.resize(index.pods().len(), None);
        }
        match &mut self.patches[place] {
            Some(patch) => patch.extend(changes),
            none => *none = Some(changes),
        }
    }

    /// Adds a reason to wait, unless there is one already. A reason that blocks a restart of a pod comes
    /// before the reason why the pod keeps its template.
    fn wait(&mut self, wait: Wait) {
        let Wait { pod: uid, code, message } = wait;
        let Some(uid) = uid else {
            self.requeue_within(LATER);
            self.waiting_all.get_or_insert(Waiting { pod: None, node: None, code, message });
            return;
        };
        let index = &self.context.index;
        let Some(place) = index.place(&uid) else { return };
        self.requeue_within(match (code.blocks(), self.ledger.restart.is_some()) {
            (true, _) => LATER,
            (false, true) => SOON,
            (false, false) => at_rest_of(self.context.snapshot.pods.len()),
        });
        if self.waiting.is_empty() {
            self.waiting.resize(index.pods().len(), None);
        }
        let known = &mut self.waiting[place];
        if code.blocks() && known.as_ref().is_some_and(|(known, _)| known.is_about_a_template()) {
            *known = None;
        }
        known.get_or_insert((code, message));
    }

    /// The reason to wait of every pod for which the plan has no action.
    fn into_waiting(mut self, actions: &[Action]) -> Vec<Waiting> {
        let index = &self.context.index;
        let acted = self.places(actions.iter().filter_map(Action::pod));
        let writes_ledger = matches!(actions.first(), Some(Action::WriteLedger(_)));
        let under_way = self.context.snapshot.ledger.under_way();
        let under_way = self.places(under_way.map(|member| member.pod_uid.as_str()));
        let mut waiting: Vec<Waiting> = self.waiting_all.into_iter().collect();
        waiting.reserve(index.pods().len());
        for (place, pod) in index.pods().enumerate().filter(|(place, _)| !acted[*place]) {
            let known = self.waiting.get_mut(place).and_then(Option::take);
            let (code, message) = known.unwrap_or_else(|| {
                if writes_ledger {
                    (Code::Recording, "writing the next step to the ledger first".into())
                } else if under_way[place] {
                    (Code::Barrier, "waiting for a cluster-wide step".into())
                } else {
                    at_rest(pod)
                }
            });
            let (pod, node) = (Some(pod.uid.clone()), Some(pod.node.clone()));
            waiting.push(Waiting { pod, node, code, message });
        }
        waiting
    }

    /// For each pod, by its place, true if its uid is among `uids`.
    fn places<'u>(&self, uids: impl Iterator<Item = &'u str>) -> Vec<bool> {
        let index = &self.context.index;
        let mut places = vec![false; index.pods().len()];
        for place in uids.filter_map(|uid| index.place(uid)) {
            places[place] = true;
        }
        places
    }
}

/// The reason to wait of a pod without a request.
fn at_rest(pod: &Pod) -> (Code, Cow<'static, str>) {
    match &pod.manager {
        Ok(manager) if manager.desired == Desired::Stopped => {
            let by = manager.last_client();
            let message = format!("{by} stopped it, and it was not started since");
            (Code::KeptStopped, message.into())
        }
        Ok(_) | Err(_) => (Code::Idle, "no restart was requested for it".into()),
    }
}
