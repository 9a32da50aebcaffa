//! The controller.

pub mod cli;
