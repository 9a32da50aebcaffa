//! One HTTP/1.1 exchange on a connection of its own, over TCP, TLS or a unix socket, bounded in time
//! and size.
//!
//! A connection that is used once cannot be stale, so an error always says whether the request can
//! have been sent. What is worth sharing is [`Tls`]: it is built once per cluster and cheap to
//! clone. Where a server issues TLS tickets, its clones resume each other's sessions; managers
//! issue none, so that no session outlives the check of a client certificate.

mod error;
mod exchange;
mod pem_document;
mod target;
mod tls;

pub use error::{ExchangeError, InvalidTarget, NoAnswer, TlsError, UntrustedCertificate};
pub use exchange::{Bounds, exchange};
pub use pem_document::Pem;
pub use target::Target;
pub use tls::{Identity, ONLY_1_3, Tls, Versions};
