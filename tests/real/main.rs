//! The shipped `stayput` on real parts: engines, PID namespaces, containers, file systems that fail,
//! clients and tokens of other makers. What is not here is skipped, by name and with the reason.
//!
//! The long form of the cycles: `STAYPUT_CYCLES=20 cargo test --test real -- cycles`.
//! A reconciler killed twenty times: `STAYPUT_RECONCILER_KILLS=20 cargo test --test real -- under_load`.

mod clients;
mod cluster;
mod conformance;
mod docker;
mod engine;
mod engine_client;
mod engine_stories;
mod kubernetes;
mod namespace;
mod pods;
mod restart;
mod rules;
mod state_dir;
mod stuck;
mod support;
