//! The custom resource `SearchCluster`: the spec that a person writes, checked, and the status.
//!
//! The apiserver refuses by the schema ([`crd`]) what a schema can express. [`SearchCluster::check`]
//! refuses the rest, all problems at once, and turns the text of the spec into types that cannot be
//! wrong. Nothing in here does I/O.

#![warn(missing_docs)]

mod check;
mod connect;
mod crd;
mod declared;
mod restart;
mod secret;
mod sources;
mod spec;
#[cfg(test)]
mod tests;

pub use crate::cluster::check::{Checked, Invalid};
pub use crate::cluster::connect::{Engine, Manager, ManagerAuth, Scheme, ServiceAccountToken};
pub use crate::cluster::crd::{
    CrdError, FieldsOfOneSide, crd, crd_yaml, missing_fields, unknown_fields,
};
pub use crate::cluster::restart::{Day, RestartSpec, WindowSpec};
pub use crate::cluster::secret::{
    ALLOW, EngineKeys, NotAllowed, allow_command, allows, engine_keys, key, others,
};
pub use crate::cluster::sources::{Auth, Live, MissingSource, Sources};
pub use crate::cluster::spec::{
    AllowedStep, ClaimRetention, Config, Distribution, Item, NodeSet, Pods, Retention,
    SearchCluster, SearchClusterSpec, SearchClusterStatus, Source, UpdateMode, UpdateSpec,
};
