//! The Kubernetes controller that restarts whole clusters, and `kubectl stayput`.
//!
//! * [`cluster`]: the custom resource `SearchCluster`: schema, validation, what it holds.
//! * [`engine_client`]: typed client of Elasticsearch and OpenSearch; version differences live here.
//! * [`controller`]: the loop: observe, plan, carry out.
//! * [`kubectl`]: `kubectl stayput`, for people and scripts.

mod certificates;
pub mod cluster;
mod connections;
pub mod controller;
pub mod engine_client;
pub mod kubectl;
mod object_name;
mod patch_operations;
mod random_id;
mod read_limits;
mod workload;
