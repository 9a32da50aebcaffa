//! A stand-in for Elasticsearch or OpenSearch: what a supervisor can see of them, without a JVM.
//!
//! `standin-engine --config DIR` reads `DIR/elasticsearch.yml`; `engine/config.rs` lists the
//! settings, among them those that make it misbehave.

use std::process::ExitCode;

mod engine;

fn main() -> ExitCode {
    ExitCode::from(engine::main(&[], std::env::args_os().skip(1).collect()))
}
