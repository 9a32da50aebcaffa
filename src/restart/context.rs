//! The input of every step of a plan. No step changes it.

use std::cell::OnceCell;

use super::changes::{Blocker, Check};
use super::index::{Index, Lookup, NameSet};
use super::rules::{Evaluation, FailedSets, preflight};
use super::{Ledger, Manager, Pod, Policy, Snapshot};

/// The observation that a plan is made from, and values computed from it once for all steps.
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) policy: &'a Policy,
    pub(super) index: Index<'a>,
    stops: OnceCell<Result<Evaluation<'a>, Blocker>>,
    failed_sets: OnceCell<FailedSets<'a>>,
    zone: OnceCell<Check>,
    kept_stopped: OnceCell<Lookup<'a, usize>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, policy: &'a Policy) -> Self {
        Self {
            snapshot,
            policy,
            index: Index::new(snapshot),
            stops: OnceCell::new(),
            failed_sets: OnceCell::new(),
            zone: OnceCell::new(),
            kept_stopped: OnceCell::new(),
        }
    }

    /// True if this ledger differs from the one the plan is made from.
    pub(super) fn has_changed(&self, ledger: &Ledger) -> bool {
        // The same ledger is recognised by its address: comparing many members takes longer.
        !std::ptr::eq(ledger, &raw const self.snapshot.ledger) && *ledger != self.snapshot.ledger
    }

    /// Checks if a pod and its manager can be stopped and started at all: [`preflight`].
    pub(super) fn preflight<'p>(&self, pod: &'p Pod) -> Result<&'p Manager, Blocker> {
        preflight(&self.snapshot.cluster.name, pod)
    }

    /// The evaluation of the rules, counted for candidates that are stopped one by one.
    pub(super) fn evaluate(&self, ledger: &Ledger) -> Result<Evaluation<'a>, Blocker> {
        Evaluation::of(&self.index, ledger, self.policy, &NameSet::default())
    }

    /// Evaluation of the rules, counted once for all stops of a plan: a plan that changes the ledger
    /// sends no stop, so only the first ledger matters.
    pub(super) fn stop_evaluation(&self, ledger: &Ledger) -> Result<&Evaluation<'a>, Blocker> {
        self.stops.get_or_init(|| self.evaluate(ledger)).as_ref().map_err(Blocker::clone)
    }

    /// The sets of pods that have failed.
    pub(super) fn failed_sets(&self) -> &FailedSets<'a> {
        self.failed_sets.get_or_init(|| FailedSets::of(&self.index, &self.snapshot.ledger))
    }

    /// Checks if a zone can be stopped as a whole; computed once for all of its nodes.
    pub(super) fn zone_may_stop(&self, find_out: impl FnOnce() -> Check) -> Check {
        self.zone.get_or_init(find_out).clone()
    }

    /// The place of a pod's entry among the nodes kept stopped, in the ledger of the snapshot.
    pub(super) fn place_of_kept_stopped(&self, uid: &str) -> Option<usize> {
        let places = || {
            let kept = self.snapshot.ledger.kept_stopped.iter().enumerate();
            kept.map(|(place, kept)| (kept.pod_uid.as_str(), place)).collect()
        };
        self.kept_stopped.get_or_init(places).get(uid).copied()
    }
}
