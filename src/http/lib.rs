//! Shared by both programs: HTTP over TLS, tokens, logs, and the client of the manager. Nothing
//! here decides anything about an engine.
//!
//! * [`http_date`]: a server's clock, by its answer.
//! * [`https`]: one HTTP exchange, bounded in time and size.
//! * [`jwt`]: scopes, keys, and tokens that carry scopes.
//! * [`manager_client`]: typed client of the manager's API.
//! * [`pem`]: certificates and keys from PEM, for both ends of TLS.
//! * [`shorten()`]: bounds texts that another program has written.
//! * [`telemetry`]: the program's own log.
//! * [`terminal`]: makes foreign text safe for a terminal.
//! * [`validity`]: when certificates are valid, and when to report that they end.
//!
//! An error displays as one whole message, including the message of its source: the code that shows
//! it adds nothing. Programs match on the variants.

pub mod http_date;
pub mod https;
pub mod jwt;
pub mod manager_client;
pub mod pem;
mod shorten;
pub mod telemetry;
pub mod terminal;
pub mod validity;

pub use shorten::shorten;
