//! The shipped `stayput` on real parts: engines, PID namespaces, containers, file systems that fail,
//! clients and tokens of other makers. What is not here is skipped, by name and with the reason.
//!
//! The long form of the cycles: `STAYPUT_CYCLES=20 cargo test --test real -- cycles`.

mod clients;
mod docker;
mod engine;
mod kubernetes;
mod namespace;
mod state_dir;
mod stuck;
mod support;
