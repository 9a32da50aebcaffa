//! The engine state machine.
mod refusal;
pub use refusal::Refusal;
