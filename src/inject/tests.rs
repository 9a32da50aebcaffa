//! Manifests in, manifests out.
#![allow(clippy::disallowed_methods)]

mod charts;
mod eck;
mod environment;
mod findings;
mod images;
mod laws;
mod lifecycle;
mod manifests;
mod operated;
mod patch;
mod ready;
mod refused;
mod scalars;
mod settings;
mod streams;
mod unread;
mod user;
mod warm;
