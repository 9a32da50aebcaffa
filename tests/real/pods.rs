//! All parts together: engines in the pods of a real Kubernetes, each under the shipped manager,
//! and the shipped reconciler, installed as users install it.

mod bare;
mod declared;
mod figures;
mod first_ten_minutes;
mod fixture;
mod nodes;
mod official;
mod opensearch;
mod own_config;
mod shell;
mod stateful_set;
mod templates;
