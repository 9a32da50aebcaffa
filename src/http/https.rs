//! One HTTP/1.1 exchange over TCP, TLS or a unix socket, bounded in time and size: on a connection of
//! its own, or on one that was kept.
//!
//! A connection that is used once cannot be stale, so an error always says whether the request can
//! have been sent. [`Kept`] is for requests that may be sent twice. [`Tls`] is shared: it is built once per cluster and cheap to clone. If a server
//! issues TLS tickets, the clones resume each other's sessions. Managers issue none, so that each
//! connection checks the client certificate.

mod error;
mod exchange;
mod kept;
mod pem_document;
mod target;
mod tls;

pub use error::{ExchangeError, InvalidTarget, NoAnswer, TlsError, UntrustedCertificate};
pub use exchange::{Bounds, exchange};
pub use kept::Kept;
pub use pem_document::Pem;
pub use target::{Stream, Target};
pub use tls::{Identity, ONLY_1_3, Tls, Versions};
