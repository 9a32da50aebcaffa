//! The controller: watches, observes, calls [`stayput_restart::plan()`], and carries the plan out.
//!
//! Nothing is decided in here. `workers` runs one task per SearchCluster (`worker`). The task
//! reconciles (`reconcile`: observe, plan, write or act, requeue), one plan at a time, and then waits
//! (`wait`) for a change that a watch, a manager or the engine reports, or for time to pass.

pub mod cli;

mod apiserver;
mod applied;
mod backoff;
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
mod health;
mod http_server;
mod lease;
mod metrics;
mod new_phases;
mod object_version;
mod observe;
mod pod_watch;
mod pods;
mod progress;
mod reconcile;
mod requeue;
mod run;
mod settings;
mod snapshot_requests;
mod snapshot_server;
mod snapshot_view;
mod status;
mod status_report;
mod transitions;
mod undecodable;
mod wait;
mod worker;
mod workers;

pub use run::{RunError, run};
pub use settings::{Account, Election, Settings};
