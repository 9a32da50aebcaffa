//! Shared by several test modules.

pub(crate) mod commands;
pub(crate) mod fake_manager;
pub(crate) mod isolated;
pub(crate) mod json_schema;
pub(crate) mod lease;
pub(crate) mod metrics;
pub(crate) mod pki;
pub(crate) mod program;
pub(crate) mod sources;
pub(crate) mod standin_cluster;
pub(crate) mod stopped_clock;
pub(crate) mod wait;
pub(crate) mod yaml;

pub(crate) use stayput_standin::harness::{engine as standin, kubelet, ports, programs, skip};
