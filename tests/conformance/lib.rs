//! One suite for each stand-in and for the real program that it replaces, so that both behave
//! alike.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

pub mod apiserver;
pub mod engine;
