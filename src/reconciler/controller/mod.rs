//! The controller: watches, reads, asks [`stayput_restart::plan()`] what to do, and does it.
//!
//! Nothing is decided in here. One task per SearchCluster observes (`observe`), plans, and carries
//! the plan out (`apply`), one plan at a time; between two plans it waits (`worker`) for a watch to
//! tell something, for a manager's long poll to be answered, or for time to pass.

pub mod cli;

mod apiserver;
mod apply;
mod backoff;
mod bounded;
mod controller;
mod credentials;
mod fresh_id;
mod health;
mod lease;
mod listen;
mod metrics;
mod observe;
mod pods;
mod publish;
mod run;
mod settings;
mod snapshots;
mod told;
mod unreadable;
mod window;
mod worker;

pub use run::run;
pub use settings::{Account, Election, Settings};
