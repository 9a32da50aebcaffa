//! Waits for changes that are not announced.

use std::thread;
use std::time::{Duration, Instant};

use super::api::ANSWER_TIMEOUT;

/// Calls `poll` until it returns something; fails with `what` after two minutes.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    eventually_or(what, poll, String::new)
}

/// The same; if it fails, it also says what `explain` finds then.
#[track_caller]
pub(crate) fn eventually_or<T>(
    what: &str,
    mut poll: impl FnMut() -> Option<T>,
    explain: impl FnOnce() -> String,
) -> T {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        if let Some(seen) = poll() {
            return seen;
        }
        if Instant::now() >= deadline {
            panic!("never happened: {what}{}", explain());
        }
        thread::sleep(Duration::from_millis(5));
    }
}
