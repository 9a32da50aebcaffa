//! Elasticsearch made by ECK itself, with the manager put in by `inject`, and restarted beside ECK: three real
//! engines with security and TLS as ECK sets them up, on a real kubelet.

mod edits;
mod elasticsearch;
mod figures;
mod in_place;
mod operator;
mod replaced;
mod routing;
mod rows;
mod stage;
mod walk;
