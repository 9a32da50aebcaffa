//! Sets that have failed as a whole: pods whose names differ in the ordinal only, of which none
//! serves any more. Most likely their config is wrong, and waiting makes nothing better.
//!
//! What counts is what the managers know, not what is merely missing:
//!
//! * An engine that ended and does not run now (`failed`, `backoff`), or whose container ends again
//!   and again, has failed.
//! * One that is starting after its last life ended by itself has failed, too: whoever crashes all
//!   the time is found there most of the time, and it has not served yet in this life, so that its
//!   stop costs a boot at most.
//! * One that is starting for the first time, or after a stop, has not: it is booting.
//! * One that runs has been ready in this life. It may hold a vote or a shard that somebody needs,
//!   and without the cluster's word nobody can tell: it never counts, ready or not.
//! * One under way because of us counts if it was not in the cluster when its turn began.

use crate::index::Index;
use crate::lookup::{Lookup, Names};
use crate::{Ledger, Manager, Member, Pod};
use stayput_api::{Desired, ExitReason, State};

use super::order::set_and_ordinal;

/// Which sets there are, and how many of each are down.
#[derive(Debug)]
pub(crate) struct Sets<'a> {
    sets: Lookup<'a, Set>,
    fates: Lookup<'a, Fate>,
}

/// How a set fares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Set {
    /// How many of its pods are meant to run.
    pub(crate) pods: usize,
    /// How many of them have failed.
    pub(crate) failed: usize,
}

/// How a pod fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It ended by itself, and has not served since.
    Failed,
    /// It may serve, for all that is known.
    MayServe,
    /// It is kept stopped on request.
    Aside,
}

impl<'a> Sets<'a> {
    /// Looks at every pod once.
    pub(crate) fn of(view: &Index<'a>, ledger: &Ledger) -> Self {
        let under_way: Lookup<'_, &Member> =
            ledger.under_way().map(|member| (member.pod_uid.as_str(), member)).collect();
        let fenced: Names<'_> =
            ledger.kept_stopped.iter().map(|fence| fence.pod_uid.as_str()).collect();
        let mut all = Self { sets: Lookup::default(), fates: Lookup::default() };
        for pod in view.pods() {
            let own = fate(view, pod);
            all.fates.insert(&pod.uid, own);
            let fate = match under_way.get(pod.uid.as_str()) {
                _ if fenced.contains(pod.uid.as_str()) => Fate::Aside,
                Some(member) if member.ephemeral_id.is_none() && !may_be_up(view, pod) => {
                    Fate::Failed
                }
                Some(_) => Fate::MayServe,
                None => own,
            };
            let set = all.sets.entry(set_and_ordinal(&pod.name).0).or_default();
            set.pods += usize::from(fate != Fate::Aside);
            set.failed += usize::from(fate == Fate::Failed);
        }
        all
    }

    /// Whether the pod has failed, and with it the whole of its set.
    pub(crate) fn have_lost(&self, pod: &Pod) -> bool {
        let set = self.set(pod);
        self.fates.get(pod.uid.as_str()) == Some(&Fate::Failed) && set.failed == set.pods
    }

    /// The set of a pod.
    pub(crate) fn set(&self, pod: &Pod) -> Set {
        self.sets.get(set_and_ordinal(&pod.name).0).copied().unwrap_or_default()
    }
}

/// The name of the set a pod belongs to.
pub(crate) fn set_of(pod: &Pod) -> &str {
    set_and_ordinal(&pod.name).0
}

fn fate(view: &Index<'_>, pod: &Pod) -> Fate {
    if pod.ready || pod.terminating || view.node(&pod.node).is_some() {
        return Fate::MayServe;
    }
    match Index::manager_of(pod) {
        Ok(manager) => of_engine(manager),
        Err(_) if pod.crash_looping => Fate::Failed,
        Err(_) => Fate::MayServe,
    }
}

fn of_engine(manager: &Manager) -> Fate {
    let ended_by_itself = manager
        .last_exit
        .as_ref()
        .is_some_and(|exit| matches!(exit.reason, ExitReason::Exited | ExitReason::Oom));
    match manager.state {
        _ if manager.desired == Desired::Stopped => Fate::Aside,
        State::Failed | State::Backoff => Fate::Failed,
        State::Starting if ended_by_itself => Fate::Failed,
        State::Starting
        | State::Running
        | State::Stopping
        | State::Killing
        | State::Stopped
        | State::Stuck => Fate::MayServe,
    }
}

/// Whether a pod under way is up again, for all that is known.
fn may_be_up(view: &Index<'_>, pod: &Pod) -> bool {
    let runs = |manager: &Manager| manager.state == State::Running;
    pod.ready || view.node(&pod.node).is_some() || pod.manager.as_ref().is_ok_and(runs)
}
