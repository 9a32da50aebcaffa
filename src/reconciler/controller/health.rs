//! Whether the controller is alive and ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Every call has a bound of its own; a pass that has lasted this long is stuck.
const STUCK: Duration = Duration::from_secs(600);

/// Filled in by those who work, read by those who ask.
#[derive(Debug, Default)]
pub(super) struct Health {
    ready: AtomicBool,
    passes: Mutex<BTreeMap<String, Instant>>,
}

impl Health {
    /// The watches have shown everything once, or another replica works.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// A pass of this SearchCluster begins.
    pub(super) fn begin(&self, cluster: &str) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.insert(cluster.to_owned(), Instant::now());
    }

    /// It is over.
    pub(super) fn end(&self, cluster: &str) {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner).remove(cluster);
    }

    /// The SearchCluster whose pass does not end, if there is one.
    pub(super) fn stuck(&self) -> Option<String> {
        let passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        let stuck = passes.iter().find(|(_, began)| began.elapsed() >= STUCK);
        stuck.map(|(cluster, _)| cluster.clone())
    }
}
