//! What several test modules need.

pub(crate) mod atomic_writer;
pub(crate) mod fake_manager;
pub(crate) mod isolated;
pub(crate) mod pki;
pub(crate) mod program;
pub(crate) mod skip;
pub(crate) mod standin;
pub(crate) mod standin_cluster;
