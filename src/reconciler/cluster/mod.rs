//! The custom resource `SearchCluster`: what a person declares, checked, and what we show.
//!
//! The schema ([`crd`]) refuses at the apiserver what it can, in sentences; [`SearchCluster::check`]
//! refuses the rest, all problems at once, and turns the text of the spec into types that cannot be
//! wrong. Nothing in here reads or writes anything.

mod check;
mod config;
mod connect;
mod crd;
mod restart;
mod secret;
mod sources;
mod spec;
mod status;

pub use check::{Checked, Invalid};
pub use config::{Config, Item, Source};
pub use connect::{Engine, Manager, ManagerAuth, Scheme, ServiceAccountToken};
pub use crd::{crd, crd_yaml};
pub use restart::{OnConfigChange, RestartSpec};
pub use secret::{ALLOW, allows, key};
pub use sources::{Auth, Live, Object, ObjectKind, Sources};
pub use spec::{Pods, SearchCluster, SearchClusterSpec};
pub use status::SearchClusterStatus;

#[cfg(test)]
mod tests;
