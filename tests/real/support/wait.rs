//! Waits for what nobody announces.

use std::thread;
use std::time::{Duration, Instant};

use super::api::PATIENCE;

/// Looks until there is something to see; fails with `what` when patience ends.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
