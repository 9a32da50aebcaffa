//! Tests of the parts working together, as one crate so that they are linked once. Each module is
//! about one surface.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

mod cli;
mod config;
mod curl_docs;
mod demo;
mod doors;
mod examples;
mod http;
mod https;
mod manager_client;
mod process;
mod specification;
mod standin;
mod state_table;
mod supervise;
mod support;
