//! Rules that must let a node pass before it is stopped: one file each, each a pure function of the
//! snapshot that answers [`Gate`](super::gate::Gate) with a sentence for people.
//!
//! * No rule chooses a node: [`order()`] says whose turn it is, the others whether it may go.
//! * What is not known is never taken for good: a rule refuses, and says what could not be read.
//! * A rule that looks at the whole engine ([`Settled`], [`Electorate`], [`Copies`]) is built once
//!   for a plan and then asked about every candidate, so that a plan over many pods stays linear.

mod copies;
mod health;
mod order;
mod preflight;
mod quorum;
mod slots;

pub(in crate::restart) use copies::Copies;
pub(in crate::restart) use health::Settled;
pub(in crate::restart) use order::order;
pub(in crate::restart) use preflight::preflight;
pub(in crate::restart) use quorum::Electorate;
pub(in crate::restart) use slots::slots;

#[cfg(test)]
mod tests;
