//! One HTTP/1.1 exchange on a connection of its own, over TCP, TLS or a unix socket, bounded in time
//! and size.
//!
//! A connection that is not kept cannot be stale, so an error always tells whether the request can
//! have been sent. What is worth sharing is [`Tls`]: it is built once per cluster and cheap to
//! clone. Where a server hands out TLS tickets, its clones resume each other's sessions; managers
//! hand out none, so that no session outlives the check of a client certificate.

mod document;
mod error;
mod exchange;
mod target;
mod tls;

pub use document::Pem;
pub use error::ExchangeError;
pub use exchange::{Bounds, exchange};
pub use target::Target;
pub use tls::{Identity, ONLY_1_3, Tls, Versions};
