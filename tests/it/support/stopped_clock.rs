//! A clock that stands still until the test moves it on, for clients of servers on other threads.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::advance;

use super::wait::DEADLINE;

/// Completes the future on such a clock: only [`advance_once`] moves it on.
pub(crate) fn on_stopped_clock<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        // A paused clock jumps to the next timer when nothing is ready, but not while another thread works. After
        // the deadline it does, so that time limits end the future.
        let (working, done) = mpsc::channel::<()>();
        let thread = spawn_blocking(move || done.recv_timeout(DEADLINE));
        let result = future.await;
        drop(working);
        let ended = thread.await.expect("no panic");
        assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "not within {DEADLINE:?}");
        result
    })
}

/// Moves the clock on by this time, as soon as the condition is true.
pub(crate) async fn advance_once(condition: impl Fn() -> bool, time: Duration) {
    while !condition() {
        let waited = spawn_blocking(|| thread::sleep(Duration::from_millis(2))).await;
        waited.expect("it sleeps");
    }
    advance(time).await;
}
