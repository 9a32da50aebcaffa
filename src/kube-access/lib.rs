//! How the controller and `kubectl stayput` reach Kubernetes, and the objects that both read.
//!
//! * [`apiserver`]: the client of the apiserver.
//! * [`cluster`]: the custom resource `SearchCluster`: schema, validation, what it holds.
//! * [`pod`]: reads a pod; [`stateful_set`]: reads a StatefulSet and its revisions;
//!   [`operator_object`]: reads the object of an operator.
//! * [`certificates`]: the Secrets with the managers' certificates, and the apiserver's keys.

pub mod apiserver;
pub mod certificates;
pub mod cluster;
pub mod names;
pub mod operator_object;
pub mod patch_operations;
pub mod pod;
pub mod read_limits;
pub mod stateful_set;
