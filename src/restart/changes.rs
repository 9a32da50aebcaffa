//! The result of one step of a plan, and of one rule: plain data, nothing is done yet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ledger::{LedgerChange, RestartChange};
use super::{Action, Change, Code, Ending, Event, Outcome, Pod, Reason, Unknown};

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
