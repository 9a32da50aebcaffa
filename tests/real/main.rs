//! The shipped `stayput` on real parts: engines, PID namespaces, containers, file systems that fail,
//! clients and tokens of other makers. What is not here is skipped, by name and with the reason.
//!
//! The long form of the cycles: `STAYPUT_CYCLES=20 cargo test --test real -- cycles`.
//! A reconciler killed twenty times: `STAYPUT_RECONCILER_KILLS=20 cargo test --test real -- under_load`.

#[path = "../conformance/mod.rs"]
mod conformance_suite;

mod clients;
#[cfg(feature = "reconciler")]
mod cluster;
#[cfg(feature = "reconciler")]
mod conformance;
mod docker;
mod engine;
#[cfg(feature = "reconciler")]
mod engine_client;
#[cfg(feature = "reconciler")]
#[path = "../engine_conformance/mod.rs"]
mod engine_conformance;
#[cfg(feature = "reconciler")]
mod engine_stories;
mod kubernetes;
mod namespace;
#[cfg(feature = "reconciler")]
mod pods;
#[cfg(feature = "reconciler")]
mod restart;
#[cfg(feature = "reconciler")]
mod rules;
mod state_dir;
mod stuck;
mod support;
