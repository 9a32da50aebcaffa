//! Tests of the parts working together, as one crate so that they are linked once. Each module is
//! about one surface.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

#[path = "../../examples/standin-apiserver/apiserver/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the programs of examples/ use the rest")]
mod apiserver;
#[path = "../conformance/mod.rs"]
mod conformance;

mod cli;
mod config;
mod curl_docs;
mod demo;
mod deploy;
mod doors;
#[cfg(feature = "reconciler")]
mod engine_client;
#[path = "../engine_conformance/mod.rs"]
mod engine_conformance;
mod examples;
mod http;
mod https;
mod kubectl;
mod manager_client;
mod process;
mod reconciler;
mod specification;
mod standin;
mod standin_apiserver;
#[cfg(feature = "reconciler")]
mod standin_client;
mod standin_cluster;
mod state_table;
mod supervise;
mod support;
