//! Shared by the tests with real parts.

pub(crate) mod api;
pub(crate) mod archive;
pub(crate) mod cluster;
pub(crate) mod container;
pub(crate) mod curl;
pub(crate) mod engine;
pub(crate) mod kubernetes;
pub(crate) mod manager;
pub(crate) mod mounts;
pub(crate) mod namespace;
pub(crate) mod namespace_processes;
pub(crate) mod pids;
pub(crate) mod programs;
#[path = "../it/release/small.rs"]
pub(crate) mod release;
pub(crate) mod shell;
pub(crate) mod wait;

pub(crate) use stayput_standin::harness::{http, kubelet, pki, ports, skip};
