//! Waits for changes that are not announced.

use std::thread;
use std::time::{Duration, Instant};

use super::api::ANSWER_TIMEOUT;

/// Between two looks for what may be over again soon.
const BRIEF_PAUSE: Duration = Duration::from_millis(20);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Calls `poll` until it returns something; fails with `what` after [`ANSWER_TIMEOUT`].
#[track_caller]
pub(crate) fn eventually<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    eventually_or(what, poll, String::new)
}

/// The same; if it fails, it also says what `explain` finds then.
#[track_caller]
pub(crate) fn eventually_or<T>(
    what: &str,
    poll: impl FnMut() -> Option<T>,
    explain: impl FnOnce() -> String,
) -> T {
    // Some polls start kubectl. Without a longer pause they take a whole core, which those that are waited
    // for need.
    let pause = |took: Duration| (took * 3).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    until(what, poll, pause, explain)
}

/// The same for what may be over again soon: it is looked for almost without a pause.
#[track_caller]
pub(crate) fn eventually_briefly<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    until(what, poll, |_| BRIEF_PAUSE, String::new)
}

/// `pause` is of how long the poll took.
#[track_caller]
fn until<T>(
    what: &str,
    mut poll: impl FnMut() -> Option<T>,
    pause: impl Fn(Duration) -> Duration,
    explain: impl FnOnce() -> String,
) -> T {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let began = Instant::now();
        if let Some(seen) = poll() {
            return seen;
        }
        if Instant::now() >= deadline {
            panic!("never happened: {what}{}", explain());
        }
        thread::sleep(pause(began.elapsed()));
    }
}
