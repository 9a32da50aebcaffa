//! Tokens that managers take: what they may say, and how they are made. `http` judges them.

pub mod key;
mod mint;
pub mod provider;
mod scopes;

pub use mint::{Grant, mint};
pub use scopes::Scopes;

/// How far ahead `exp` may be, in seconds: a token that leaks is soon worthless.
pub const MAX_AHEAD: u64 = 60 * 60;

/// The audience of tokens for the manager of one pod.
pub fn pod_audience(namespace: &str, uid: &str) -> String {
    format!("stayput:{namespace}/{uid}")
}
