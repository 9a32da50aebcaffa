//! The shipped `stayput` with real parts: engines, PID namespaces, containers, file systems that
//! fail, clients and tokens of other vendors. Tests whose part is missing are skipped, with name
//! and reason.
//!
//! The long form of the cycles: `STAYPUT_CYCLES=20 cargo test --test real -- cycles`.
//! A reconciler killed twenty times: `STAYPUT_RECONCILER_KILLS=20 cargo test --test real -- under_load`.

mod clients;
mod conformance;
mod deploy;
mod docker;
mod engine;
mod engine_client;
mod engine_stories;
mod hung_config;
mod kubernetes;
mod namespace;
mod pids;
mod pods;
mod restart;
mod rules;
mod state_dir;
mod stuck;
mod support;
mod ui;
