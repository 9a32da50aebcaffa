//! stayput restarts a search engine's process and keeps its pod.
//!
//! # Rooms
//! Pure, compiled with no feature at all: no clock, no I/O, no async.
//! * [`api`]: messages of the HTTP contract.
//! * [`checksum`]: one checksum over a set of files, the same for manager and reconciler.
//! * [`lifecycle`]: the engine's state machine, `step(now, event) -> effects`.
//!
//! Manager (feature `manager`), where the effects happen:
//! * [`process`]: spawn, signals, the only caller of `wait`; the only `unsafe`.
//! * [`supervisor`]: one task that owns engine, timers and journal.
//! * [`config_watch`]: the mounted config, its checksum, staging, last good.
//! * [`http`]: listeners, TLS, who may call, routes.
//! * [`manager_client`], [`cli`]: the client half of the binary.
//! * [`settings`], [`telemetry`], [`metrics`]: our own options, logs, numbers; `pem`, for both ends
//!   of TLS.
//!
//! `ARCHITECTURE.md` draws the doors between them; `tests/it/doors.rs` keeps them shut.

pub mod api;
pub mod checksum;
pub mod lifecycle;
pub mod restart;

#[cfg(feature = "manager")]
pub mod cli;
#[cfg(feature = "manager")]
pub mod config_watch;
#[cfg(feature = "manager")]
pub mod http;
#[cfg(feature = "manager")]
pub mod manager_client;
#[cfg(feature = "manager")]
pub mod metrics;
#[cfg(feature = "manager")]
mod pem;
#[cfg(feature = "manager")]
pub mod process;
#[cfg(feature = "manager")]
pub mod settings;
#[cfg(feature = "manager")]
pub mod supervisor;
#[cfg(feature = "manager")]
pub mod telemetry;
