//! The OpenSearch operator 3.x beside a cluster whose pods exist: [`decide`] is what it does in one look, [`Operator`]
//! carries that out. By its source, <https://github.com/opensearch-project/opensearch-k8s-operator> at ef6502ab.
//!
//! Left out: the objects around the pods, security, TLS and Dashboards; scaling, upgrades, draining (`drainDataNodes`),
//! and pools without claims (`emptydir_recovery.go`). The StatefulSet may have any name, and the spec of its pods is
//! the test's: only config, image, variables, labels and annotations are made from the `OpenSearchCluster`.

mod decide;
mod look;
mod objects;
#[cfg(test)]
mod tests;

pub use decide::{Action, Decision, Pod, Policy, Pool, Seen, decide};
pub use look::{Look, Operator};
pub use objects::{CLUSTER_LABEL, POOL_LABEL, definition, first_objects, just_created, labels};
