//! Instants of the lifecycle: the wall clock at the manager's start plus monotonic time since.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::lifecycle::Millis;

/// A clock that shows the time of day and never jumps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Millis,
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { wall: time_of_day(), start: Instant::now() }
    }

    /// Goes on with the clock of the previous program, which was ahead of the time of day by this
    /// many milliseconds.
    pub(super) fn go_on(ahead: i64) -> Self {
        Self { wall: time_of_day().saturating_add_signed(ahead), start: Instant::now() }
    }

    /// Milliseconds by which the clock is ahead of the time of day, which may have been set since
    /// the clock started.
    pub(super) fn ahead(&self) -> i64 {
        self.now().wrapping_sub(time_of_day()).cast_signed()
    }

    pub(super) fn now(&self) -> Millis {
        self.wall + millis(self.start.elapsed())
    }

    /// The tokio instant at which `due` is reached.
    pub(super) fn instant(&self, due: Millis) -> Instant {
        self.start + Duration::from_millis(due.saturating_sub(self.wall))
    }
}

fn time_of_day() -> Millis {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
