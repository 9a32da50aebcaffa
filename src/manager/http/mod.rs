//! The API: listeners, TLS, who may call, routes.
//!
//! ```text
//! accept ─► place ─► handshake ─► peer ─► route ─► caller ─► scope ─► body ─► supervisor's handle
//! server.rs          connection.rs        routes.rs                   body.rs handlers.rs, wait.rs
//! ```
//! Keys and certificates are one value (`material.rs`) that is replaced when their files change
//! (`reload.rs`). The supervisor is known by its handle only.

mod app;
mod auth;
mod body;
mod browser;
mod connection;
mod handlers;
mod limits;
mod listener;
mod material;
mod query;
mod reload;
mod respond;
mod routes;
mod server;
mod settings;
mod tls;
mod wait;

pub use limits::Limits;
pub use routes::{Access, ROUTES, Route};
pub use server::Server;
pub use settings::{HttpSettings, parse_listen};

#[cfg(test)]
mod tests;
