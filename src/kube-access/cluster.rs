//! The custom resource `SearchCluster`: the spec that a person writes, checked, and the status.
//!
//! The apiserver refuses by the schema ([`crd`]) what a schema can express. [`SearchCluster::check`]
//! refuses the rest, all problems at once, and turns the text of the spec into types that cannot be
//! wrong. Nothing in here does I/O.

#![warn(missing_docs)]

mod check;
mod config;
mod connect;
mod crd;
mod declared;
mod missing;
mod nodes;
mod restart;
mod secret;
mod sources;
mod spec;
mod status;
mod update;
mod windows;

pub use check::{Checked, Invalid};
pub use config::{Config, Item, Source};
pub use connect::{Engine, Manager, ManagerAuth, Scheme, ServiceAccountToken};
pub use crd::{CrdError, crd, crd_yaml};
pub use missing::{FieldsOfOneSide, missing_fields, unknown_fields};
pub use nodes::{ClaimRetention, Distribution, NodeSet, Retention};
pub use restart::RestartSpec;
pub use secret::{ALLOW, EngineKeys, NotAllowed, allow_command, allows, engine_keys, key, others};
pub use sources::{Auth, Live, MissingSource, Sources};
pub use spec::{Pods, SearchCluster, SearchClusterSpec};
pub use status::SearchClusterStatus;
pub use update::{AllowedStep, UpdateMode, UpdateSpec};
pub use windows::{Day, WindowSpec};

#[cfg(test)]
mod tests;
