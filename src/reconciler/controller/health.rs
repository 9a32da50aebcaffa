//! Whether the controller is alive and ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Every call has its own timeout; a reconcile that takes longer than this is stuck.
const STUCK_TIMEOUT: Duration = Duration::from_secs(600);

/// Set by the tasks, read by the HTTP server.
#[derive(Debug, Default)]
pub(super) struct Health {
    ready: AtomicBool,
    reconciles: Mutex<BTreeMap<String, Instant>>,
}

impl Health {
    /// Ready: the watches have shown everything once, or another replica is the leader.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// A reconcile of this SearchCluster begins.
    pub(super) fn begin(&self, cluster: &str) {
        let mut reconciles = self.reconciles.lock().unwrap_or_else(PoisonError::into_inner);
        reconciles.insert(cluster.to_owned(), Instant::now());
    }

    /// It has ended.
    pub(super) fn end(&self, cluster: &str) {
        self.reconciles.lock().unwrap_or_else(PoisonError::into_inner).remove(cluster);
    }

    /// No reconcile is under way any more.
    pub(super) fn clear(&self) {
        self.reconciles.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The SearchCluster whose reconcile is stuck, if there is one.
    pub(super) fn stuck(&self) -> Option<String> {
        let reconciles = self.reconciles.lock().unwrap_or_else(PoisonError::into_inner);
        let stuck = reconciles.iter().find(|(_, began)| began.elapsed() >= STUCK_TIMEOUT);
        stuck.map(|(cluster, _)| cluster.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_that_never_ends_is_stuck_until_it_is_given_up() {
        let health = Health::default();
        health.begin("search/logs");
        assert_eq!(health.stuck(), None);
        tokio::time::advance(STUCK_TIMEOUT).await;
        assert_eq!(health.stuck().as_deref(), Some("search/logs"));
        health.clear();
        assert_eq!(health.stuck(), None);
    }
}
