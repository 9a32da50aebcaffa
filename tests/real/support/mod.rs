//! What the tests on real parts share.

pub(crate) mod api;
pub(crate) mod cluster;
pub(crate) mod container;
pub(crate) mod curl;
pub(crate) mod engine;
pub(crate) mod guests;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod manager;
pub(crate) mod mounts;
pub(crate) mod programs;
pub(crate) mod wait;

pub(crate) use stayput_standin::harness::{atomic_writer, skip};
