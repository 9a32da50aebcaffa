//! Bearer tokens for managers: scopes, keys, minting. The manager's `http` module verifies them.

mod mint;
mod provider;
mod scopes;
mod shared_key;

pub use mint::{Grant, GrantError, MintError, mint};
pub use provider::install as install_provider;
pub use scopes::{Scopes, UnknownScope};
pub use shared_key::{SharedKeyError, shared_key};

/// How far ahead `exp` may be, in seconds, so that a stolen token expires soon.
pub const MAX_AHEAD: u64 = 60 * 60;

/// Seconds by which the clocks of a token's maker and of the manager may differ.
pub const LEEWAY: u64 = 30;

/// The audience of tokens for the manager of one pod.
pub fn pod_audience(namespace: &str, uid: &str) -> String {
    format!("stayput:{namespace}/{uid}")
}
