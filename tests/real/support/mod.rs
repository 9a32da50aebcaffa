//! What the tests on real parts share.

pub(crate) mod api;
#[path = "../../it/support/atomic_writer.rs"]
pub(crate) mod atomic_writer;
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
#[path = "../../it/support/skip.rs"]
pub(crate) mod skip;
pub(crate) mod wait;
