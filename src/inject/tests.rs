//! Manifests in, manifests out.
#![allow(clippy::disallowed_methods)]

mod charts;
mod eck;
mod findings;
mod images;
mod laws;
mod manifests;
mod patch;
mod ready;
mod refused;
mod scalars;
mod user;
mod warm;
