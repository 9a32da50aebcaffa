//! Shared by both programs: HTTP over TLS, tokens, logs, and the client of the manager. Nothing
//! here decides anything about an engine.
//!
//! * [`https`]: one HTTP exchange, bounded in time and size.
//! * [`jwt`]: scopes, keys, and tokens that carry scopes.
//! * [`manager_client`]: typed client of the manager's API.
//! * [`server`]: places for connections, and the loop that accepts them.
//! * [`pem`]: certificates and keys from PEM, for both ends of TLS, and when certificates are valid.
//! * [`telemetry`]: the program's own log.
//! * [`terminal`]: makes foreign text short, and safe for a terminal.
//!
//! An error is one whole message, including the message of its source: the code that shows it adds
//! nothing. It is a text, unless programs match on its variants.

pub mod https;
pub mod jwt;
pub mod manager_client;
pub mod pem;
pub mod server;
pub mod telemetry;
pub mod terminal;

pub use terminal::shorten;
