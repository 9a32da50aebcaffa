//! Readiness of the controller.

use std::sync::atomic::{AtomicBool, Ordering};

/// Readiness, set by the tasks and read by the HTTP server.
#[derive(Debug, Default)]
pub(super) struct Health(AtomicBool);

impl Health {
    /// Sets the readiness: the watches have shown everything once, or another replica is the leader.
    pub(super) fn set_ready(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
