//! The API server: listeners, TLS, authentication, routes.
//!
//! ```text
//! accept ─► place ─► handshake ─► peer ─► route ─► caller ─► scope ─► body ─► supervisor's handle
//! server.rs         connection.rs         routes.rs                   body.rs handlers.rs, wait.rs
//! ```
//! Keys and certificates are one value (`key_files.rs`) that is replaced when their files change
//! (`reload.rs`), and the last certificate is kept (`kept_pair.rs`). A fault of a key file or an
//! address is reported, and retried until it is over (`binding.rs`, `reload.rs`): the rest is
//! served meanwhile. This module uses the supervisor through its handle only.

mod auth;
mod binding;
mod body;
mod checked_keys;
mod connection;
mod context;
mod csrf;
mod expiry;
mod handlers;
mod handshake;
mod kept_pair;
mod key_files;
mod key_watch;
mod limits;
mod listener;
mod places;
mod query;
mod ready;
mod reload;
mod respond;
mod retry;
mod routes;
mod server;
mod settings;
mod tls;
pub(crate) mod wait;

pub use kept_pair::KeptPair;
pub use limits::Limits;
pub use routes::{Access, ROUTES, Route};
pub use server::Server;
pub use settings::{HttpSettings, InvalidListenAddress, parse_listen};
pub use tls::{TlsMin, UnknownTlsVersion};

#[cfg(test)]
mod tests;
