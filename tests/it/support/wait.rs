//! Waiting with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Much longer than any step takes on a slow and busy machine: if a test reaches it, there is a bug.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Calls `poll` until it returns something. Nothing depends on the length of the pause in between.
pub(crate) fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < until, "{what}: not within {DEADLINE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
