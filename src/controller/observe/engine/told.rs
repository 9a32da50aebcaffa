//! The engine's answer to the wait that has ended, so that the next look need not ask for it.

use std::time::Duration;

use tokio::time::Instant;

use stayput_engine::{Health, Topology};

/// Maximum age at which the answer still counts as current.
pub(super) const MAX_AGE: Duration = Duration::from_millis(100);

/// The engine's answer to a wait.
#[derive(Debug)]
pub(crate) enum Told {
    /// The cluster is green, and its master has no tasks.
    Green(Health),
    /// A node has joined: nodes and votes, from a node that knows it before the elected master.
    Joined(Topology),
}

/// The last answer, for the next look.
#[derive(Debug)]
pub(super) struct LastTold {
    pub(super) at: Instant,
    told: Told,
}

impl LastTold {
    pub(super) fn now(told: Told) -> Self {
        Self { at: Instant::now(), told }
    }

    /// Health and list of nodes, unless they are older than [`MAX_AGE`].
    pub(super) fn in_time(self) -> (Option<Health>, Option<Topology>) {
        match self.told {
            _ if self.at.elapsed() >= MAX_AGE => (None, None),
            Told::Green(health) => (Some(health), None),
            Told::Joined(listed) => (None, Some(listed)),
        }
    }
}
