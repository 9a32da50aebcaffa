//! From a declared cluster (`spec.nodeSets`) and its existing objects to the objects that are wanted
//! now. Nothing here reads a clock, a file or the network.
//!
//! * [`check`]: errors in the declaration itself.
//! * [`plan`]: the objects to apply now, in their order; or why nothing is changed.
//! * [`foreign_claims`]: the volume claims of somebody else that new nodes would mount.
//! * [`garbage`]: config Secrets of removed node sets that nobody needs any more.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod bootstrap;
mod check;
mod claims;
mod cluster;
mod config;
mod object;
mod plan;
mod pod;

pub use bootstrap::{Bootstrap, NEVER_FORMED};
pub use check::{Refusal, check};
pub use claims::{ForeignClaim, SeenClaim, foreign_claims, going_claim, makes_claims};
pub use cluster::{
    Cluster, Distribution, Engine, Manager, NodeSet, Observed, ObservedSet, Version,
};
pub use config::{SeenSecret, garbage};
pub use object::{CLUSTER, DECLARED, Kind, MAX_STATEFUL_SET, NODE_SET, Object, bootstrap};
pub use plan::{Plan, plan};
pub use stayput_pod_spec::NAME as MANAGER;

#[cfg(test)]
mod tests;
