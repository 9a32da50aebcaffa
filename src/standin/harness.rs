//! Starts and observes programs, for the demo and the tests alike.

#![allow(
    clippy::disallowed_types,
    reason = "outside the manager, the code that starts a child waits for it"
)]

pub mod addresses;
pub mod atomic_writer;
pub mod engine;
pub mod http;
pub mod kubelet;
pub mod objects;
pub mod paused_clock;
pub mod pki;
pub mod ports;
pub mod processes;
pub mod programs;
pub mod recorder;
pub mod served;
pub mod skip;
