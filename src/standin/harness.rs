//! Starts and observes programs, for the demo and the tests alike.

#![allow(
    clippy::disallowed_types,
    reason = "outside the manager, the code that starts a child waits for it"
)]

use std::fs::OpenOptions;
use std::io::Write;

pub mod engine;
pub mod http;
pub mod kubelet;
pub mod objects;
pub mod paused_clock;
pub mod pki;
pub mod ports;
pub mod programs;
pub mod recorder;
pub mod served;

/// Reports that the test `name` cannot run here, with the reason: on stdout, and in the file that `STAYPUT_SKIPS`
/// names.
pub fn skip(name: &str, reason: &str) {
    println!("skipped {name}: {reason}");
    if let Some(path) = std::env::var_os("STAYPUT_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, so that lines of parallel tests do not mix.
        let line = format!("{name}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file that STAYPUT_SKIPS names can be written");
    }
}
