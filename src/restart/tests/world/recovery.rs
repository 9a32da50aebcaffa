//! The engine reads its state from disk. A process that starts has none of it: after a full stop of all
//! masters the cluster has a master, and hides indices, settings and shutdown records until it has read
//! them.

use std::collections::BTreeSet;

#[derive(Debug, Clone, Default)]
pub(crate) struct StateRecovery {
    /// How long it takes after a full stop, in milliseconds.
    pub(crate) takes: u64,
    has_formed: bool,
    /// Runs of the masters that have the state.
    known_by: BTreeSet<String>,
    /// When it is over, while it is under way.
    over_at: Option<u64>,
}

impl StateRecovery {
    /// These masters run, by their runs; `has_master` says whether one is elected.
    pub(super) fn settle(&mut self, now: u64, masters: &BTreeSet<String>, has_master: bool) {
        self.known_by.retain(|run| masters.contains(run));
        if !has_master {
            self.over_at = None;
            return;
        }
        if self.has_formed && self.known_by.is_empty() {
            let over_at = *self.over_at.get_or_insert(now + self.takes);
            if now < over_at {
                return;
            }
        }
        self.over_at = None;
        self.has_formed = true;
        self.known_by.clone_from(masters);
    }

    pub(crate) const fn is_under_way(&self) -> bool {
        self.over_at.is_some()
    }

    pub(super) fn next(&self, now: u64) -> Option<u64> {
        self.over_at.filter(|at| *at > now)
    }
}
