//! What both programs need to talk: HTTP over TLS, tokens, logs, and the client of the manager.
//!
//! * [`https`]: one HTTP exchange, bounded in time and size.
//! * [`jwt`]: scopes, and tokens that carry them.
//! * [`manager_client`]: typed client of the manager's API.
//! * [`pem`]: certificates and keys from PEM, for both ends of TLS.
//! * [`telemetry`]: the program's own log.
//! * [`terminal`]: text from elsewhere, made safe for a terminal.

pub mod https;
pub mod jwt;
pub mod manager_client;
pub mod pem;
pub mod telemetry;
pub mod terminal;
