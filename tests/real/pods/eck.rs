//! Elasticsearch made by ECK itself, with the manager put in by `inject`, and restarted beside ECK: three real
//! engines with security and TLS as ECK sets them up, on a real kubelet.

mod elasticsearch;
mod hosts;
mod operator;
mod replaced;
mod routing;
mod service;
mod stage;
mod walk;
