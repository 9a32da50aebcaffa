//! Tests of several modules together, in one crate so that they are linked once. Each module tests
//! one interface.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

mod chart;
mod cli;
mod config;
mod curl_docs;
mod demo;
mod deploy;
mod document_loops;
mod documents;
mod engine_client;
mod examples;
mod files;
mod house;
mod http;
mod https;
mod kubectl;
mod manager_client;
mod monitoring;
mod packaging;
mod printed_commands;
mod process;
mod reconciler;
mod release;
mod runbook;
mod specification;
mod standin;
mod standin_apiserver;
mod standin_client;
mod standin_cluster;
mod state_table;
mod supervise;
mod support;
mod surface;
mod warm;
