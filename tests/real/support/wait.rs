//! Waits for changes that are not announced.

use std::thread;
use std::time::{Duration, Instant};

use super::api::ANSWER_TIMEOUT;

/// Calls `poll` until it returns something; fails with `what` after two minutes.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        if let Some(seen) = poll() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
