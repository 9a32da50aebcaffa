//! Instants of the lifecycle: the wall clock at the manager's start plus monotonic time since.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::lifecycle::Millis;

/// A clock that shows the time of day and never jumps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    wall: Millis,
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: millis(since_epoch), start: Instant::now() }
    }

    pub(super) fn now(&self) -> Millis {
        self.wall + millis(self.start.elapsed())
    }

    /// The tokio instant at which `due` is reached.
    pub(super) fn instant(&self, due: Millis) -> Instant {
        self.start + Duration::from_millis(due.saturating_sub(self.wall))
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
