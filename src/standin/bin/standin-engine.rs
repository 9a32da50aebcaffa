//! A stand-in for Elasticsearch or OpenSearch: it behaves as a supervisor sees them, without a JVM.
//!
//! Several of them form a cluster (`discovery.seed_hosts`): they elect a master, hold shards, and
//! answer REST as the real engines do, so that a restart of a whole cluster needs nothing installed.
//!
//! `standin-engine --config DIR` reads `DIR/elasticsearch.yml` or `opensearch.yml`; `engine/config.rs` lists the
//! settings, among them those that make it misbehave.

use std::process::ExitCode;

use stayput_standin::engine;

fn main() -> ExitCode {
    ExitCode::from(engine::main(&[], std::env::args_os().skip(1).collect()))
}
