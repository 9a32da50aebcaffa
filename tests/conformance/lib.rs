//! One suite for each stand-in and the real thing it stands for, so that the stand-in cannot lie.
#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

pub mod apiserver;
pub mod engine;
