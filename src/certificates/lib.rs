//! The certificates of managers and the keys that they check tokens with: what to make or renew
//! now, and how. Nothing here reads a clock, a file or the network; new keys are random.
//!
//! * [`decide`]: from [`CertificateFacts`] about the certificates to the next [`Step`].
//! * [`issue`]: makes and reads certificates and keys.
//! * [`key_set`]: which public keys of the apiserver managers are to have.
//! * [`names`]: the objects that certificates and keys are kept in.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod decide;
mod facts;
pub mod issue;
pub mod key_set;
pub mod names;
mod problem;

pub use decide::{Decision, Step, decide};
pub use facts::{Authority, CertificateFacts, Existing, Id, Serving};
pub use problem::Problem;

#[cfg(test)]
mod tests;
