//! A paused clock beside real connections.

use std::thread;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

/// How far the clock goes at most at once.
const STEP: Duration = Duration::from_millis(500);
/// How long each step takes: packets arrive meanwhile.
const REAL: Duration = Duration::from_millis(2);

/// Until its end, a paused clock goes in small steps. By itself it goes on to the next timer as soon as nothing
/// is ready, also if a packet of a loopback connection is still on its way in the kernel: then a time is over
/// in which the other side has answered.
pub fn in_steps() -> JoinHandle<()> {
    tokio::spawn(async {
        loop {
            // It does not go on while another thread works.
            let worked = spawn_blocking(|| thread::sleep(REAL)).await;
            worked.expect("it sleeps");
            sleep(STEP).await;
        }
    })
}
