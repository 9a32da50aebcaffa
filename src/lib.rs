//! stayput restarts a search engine's process and keeps its pod.
//!
//! # Rooms
//! Pure, compiled with no feature at all: no clock, no I/O, no async.
//! * [`api`]: messages of the HTTP contract.
//! * [`checksum`]: one checksum over a set of files, the same for manager and reconciler.
//! * [`lifecycle`]: the engine's state machine, `step(now, event) -> effects`.
//! * [`restart`]: whole clusters, `plan(snapshot, policy) -> plan`.
//!
//! Manager (feature `manager`), where the effects happen:
//! * [`process`]: spawn, signals, the only caller of `wait`; the only `unsafe`.
//! * [`supervisor`]: one task that owns engine, timers and journal.
//! * [`config_watch`]: the mounted config, its checksum, staging, last good.
//! * [`http`]: listeners, TLS, who may call, routes.
//! * [`cli`]: the subcommands of the binary.
//! * [`settings`], [`telemetry`], [`metrics`]: our own options, logs, numbers.
//!
//! Both programs:
//! * [`https`]: one HTTP exchange, bounded; `pem`, for both ends of TLS.
//! * [`jwt`]: scopes, and tokens that speak for them.
//! * [`manager_client`]: typed client of the manager's API.
//!
//! Reconciler (feature `reconciler`):
//! * [`cluster`]: the custom resource `SearchCluster`, checked.
//! * [`engine_client`]: typed client of the engines' REST interface.
//! * [`kubectl`]: `kubectl stayput`, for people and scripts.
//! * [`reconciler`]: the loop that carries plans out.
//!
//! `ARCHITECTURE.md` draws the doors between them; `tests/it/doors.rs` keeps them shut.

pub mod api;
pub mod checksum;
pub mod lifecycle;
pub mod restart;

#[cfg(feature = "manager")]
pub mod cli;
#[cfg(feature = "reconciler")]
pub mod cluster;
#[cfg(feature = "manager")]
pub mod config_watch;
#[cfg(feature = "reconciler")]
pub mod engine_client;
#[cfg(feature = "manager")]
pub mod http;
#[cfg(any(feature = "manager", feature = "reconciler"))]
pub mod https;
#[cfg(any(feature = "manager", feature = "reconciler"))]
pub mod jwt;
#[cfg(feature = "reconciler")]
pub mod kubectl;
#[cfg(any(feature = "manager", feature = "reconciler"))]
pub mod manager_client;
#[cfg(feature = "manager")]
pub mod metrics;
#[cfg(any(feature = "manager", feature = "reconciler"))]
mod pem;
#[cfg(feature = "manager")]
pub mod process;
#[cfg(feature = "reconciler")]
pub mod reconciler;
#[cfg(feature = "manager")]
pub mod settings;
#[cfg(feature = "manager")]
pub mod supervisor;
#[cfg(any(feature = "manager", feature = "reconciler"))]
pub mod telemetry;
#[cfg(any(feature = "manager", feature = "reconciler"))]
mod terminal;
