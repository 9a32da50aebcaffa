//! A paused clock beside real connections.

use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How far the clock goes at most at once.
const STEP: Duration = Duration::from_millis(500);
/// How long each step takes: packets arrive meanwhile.
const REAL: Duration = Duration::from_millis(2);

/// From now on a paused clock goes on in small steps. By itself it jumps to the next timer as soon as nothing is
/// ready, also while the kernel still has a packet of a loopback connection: a time limit is then over although
/// the other side has answered.
pub fn in_steps() {
    tokio::spawn(async {
        loop {
            // It does not go on while another thread works.
            let worked = spawn_blocking(|| thread::sleep(REAL)).await;
            worked.expect("it sleeps");
            sleep(STEP).await;
        }
    });
}
