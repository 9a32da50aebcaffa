//! Sets that have failed as a whole: pods whose names differ only in the ordinal, of which none
//! serves any more. Most likely their config is wrong, and waiting does not help.
//!
//! The managers must confirm the failure; a missing node is not enough:
//!
//! * An engine that ended by itself and does not run now (`failed`, `backoff`), or whose container is
//!   crash-looping, has failed.
//! * An engine that is starting after its last run ended by itself has failed, too: this is the usual
//!   state of an engine that crashes again and again. It has not served in this run, so that a stop
//!   costs one start at most.
//! * An engine that is starting for the first time or after a stop has not failed.
//! * A running engine was ready in this run. It may hold a vote or a shard that is needed, and
//!   without the engine's node list this is unknown: it never counts as failed, ready or not.
//! * A node under way because of us has failed if it was not in the cluster when it took its slot.

use crate::index::{Index, Lookup, NameSet};
use crate::snapshot::set_and_ordinal;
use crate::{Ledger, Manager, Member, Pod};
use stayput_api::{Desired, ExitReason, State};

/// All sets of pods, and how many pods of each have failed.
#[derive(Debug)]
pub(crate) struct FailedSets<'a> {
    sets: Lookup<'a, Set>,
    conditions: Lookup<'a, PodCondition>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Set {
    /// Number of pods that should run.
    pub(crate) pods: usize,
    /// Number of pods that should run and have failed.
    pub(crate) failed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodCondition {
    /// The engine ended by itself and has not served since.
    Failed,
    MayServe,
    /// The node is kept stopped.
    NotExpected,
}

impl<'a> FailedSets<'a> {
    pub(crate) fn of(view: &Index<'a>, ledger: &Ledger) -> Self {
        let under_way: Lookup<'_, &Member> =
            ledger.under_way().map(|member| (member.pod_uid.as_str(), member)).collect();
        let kept_stopped: NameSet<'_> =
            ledger.kept_stopped.iter().map(|entry| entry.pod_uid.as_str()).collect();
        let mut all = Self { sets: Lookup::default(), conditions: Lookup::default() };
        for pod in view.pods() {
            let own = condition(view, pod);
            all.conditions.insert(&pod.uid, own);
            let condition = match under_way.get(pod.uid.as_str()) {
                _ if kept_stopped.contains(pod.uid.as_str()) => PodCondition::NotExpected,
                Some(member) if member.ephemeral_id.is_none() && !may_be_up(view, pod) => {
                    PodCondition::Failed
                }
                Some(_) => PodCondition::MayServe,
                None => own,
            };
            let set = all.sets.entry(set_and_ordinal(&pod.name).0).or_default();
            set.pods += usize::from(condition != PodCondition::NotExpected);
            set.failed += usize::from(condition == PodCondition::Failed);
        }
        all
    }

    /// True if the pod and all others of its set have failed.
    pub(crate) fn whole_set_failed(&self, pod: &Pod) -> bool {
        let set = self.set(pod);
        self.conditions.get(pod.uid.as_str()) == Some(&PodCondition::Failed)
            && set.failed == set.pods
    }

    pub(crate) fn set(&self, pod: &Pod) -> Set {
        self.sets.get(set_and_ordinal(&pod.name).0).copied().unwrap_or_default()
    }
}

pub(crate) fn set_of(pod: &Pod) -> &str {
    set_and_ordinal(&pod.name).0
}

fn condition(view: &Index<'_>, pod: &Pod) -> PodCondition {
    if pod.ready || pod.terminating || view.node(&pod.node).is_some() {
        return PodCondition::MayServe;
    }
    match Index::manager_of(pod) {
        Ok(manager) => of_engine(manager),
        Err(_) if pod.crash_looping => PodCondition::Failed,
        Err(_) => PodCondition::MayServe,
    }
}

fn of_engine(manager: &Manager) -> PodCondition {
    let ended_by_itself = manager
        .last_exit
        .as_ref()
        .is_some_and(|exit| matches!(exit.reason, ExitReason::Exited | ExitReason::Oom));
    match manager.state {
        _ if manager.desired == Desired::Stopped => PodCondition::NotExpected,
        State::Failed | State::Backoff => PodCondition::Failed,
        State::Starting if ended_by_itself => PodCondition::Failed,
        State::Starting
        | State::Running
        | State::Stopping
        | State::Killing
        | State::Stopped
        | State::Stuck => PodCondition::MayServe,
    }
}

/// True if a pod under way may be up again.
fn may_be_up(view: &Index<'_>, pod: &Pod) -> bool {
    let runs = |manager: &Manager| manager.state == State::Running;
    pod.ready || view.node(&pod.node).is_some() || pod.manager.as_ref().is_ok_and(runs)
}
