//! The controller: watches, observes, calls [`stayput_restart::plan()`], and carries the plan out.
//!
//! Nothing is decided in here. `workers` runs one task per SearchCluster (`worker`). The task
//! reconciles (`reconcile`: observe, plan, write or act, requeue), one plan at a time, and then waits
//! (`wait`) for a change that a watch, a manager or the engine reports, or for time to pass.

pub mod cli;

mod apiserver;
mod certificates;
mod clusters;
mod concurrency;
mod context;
mod credentials;
mod decision_log;
mod declared;
mod definition;
mod effective_spec;
mod event_recorder;
mod execute;
mod failure;
mod http_server;
mod lease;
mod metrics;
mod observe;
mod pod_watch;
mod pods;
mod reconcile;
mod requeue;
mod run;
mod status;
mod wait;
mod workers;

pub use run::{Account, Election, Settings};
pub use run::{RunError, run};
