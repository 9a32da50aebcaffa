//! All parts together: engines in the pods of a real Kubernetes, each under the shipped manager,
//! and the shipped reconciler, installed as users install it.

mod bare;
mod clients;
mod declared;
mod declared_document;
mod document;
mod door;
mod eck;
mod figures;
mod first_ten_minutes;
mod five_commands;
mod fixture;
mod history;
mod hosts;
mod ladder;
mod nodes;
mod official;
mod opensearch;
mod opensearch_operator;
mod opensearch_set;
mod operator_program;
mod own_config;
mod phases;
mod releases;
mod secured;
mod seen;
mod stateful_set;
mod templates;
mod tls_client;
mod trusted;
mod upgrade_document;
mod victim;
mod warm;
