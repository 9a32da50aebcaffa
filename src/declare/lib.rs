//! From a declared cluster (`spec.nodeSets`) and its existing objects to the objects that are wanted
//! now. Nothing here reads a clock, a file or the network.
//!
//! * [`check`]: errors in the declaration itself.
//! * [`plan`]: the objects to apply now, in their order; or why nothing is changed.
//! * [`foreign_claims`]: the volume claims of somebody else that new nodes would mount.
//! * [`leave()`]: removes nodes that are not declared any more.
//! * [`garbage`]: config Secrets of removed node sets that nobody needs any more.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod bootstrap;
mod check;
mod claims;
mod cluster;
mod config;
mod engine;
mod garbage;
mod labels;
mod leave;
mod listening;
mod merge;
mod names;
mod object;
mod observed;
mod plan;
mod pod;
mod refusal;
mod roles;
mod service;
mod stateful_set;
mod upgrade;

pub use bootstrap::{Bootstrap, NEVER_FORMED};
pub use check::check;
pub use claims::{ForeignClaim, SeenClaim, foreign_claims, going_claim, makes_claims};
pub use cluster::{Cluster, Manager, NodeSet};
pub use engine::{Distribution, Engine, Version};
pub use garbage::{SeenSecret, garbage};
pub use labels::{CLUSTER, NODE_SET};
pub use leave::{
    Action, Excluded, ExcludedBefore, LeaveFacts, LeavePlan, Leaving, Seen, SeenNode, Set, Votes,
    leave, others_exclusions, sets,
};
pub use names::{MAX_STATEFUL_SET, bootstrap};
pub use object::{Kind, Object};
pub use observed::{Observed, ObservedSet};
pub use plan::{Plan, plan};
pub use refusal::Refusal;
pub use stateful_set::DECLARED;
pub use stayput_pod_spec::NAME as MANAGER;

#[cfg(test)]
mod tests;
