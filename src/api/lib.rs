//! Messages of the HTTP contract between the manager and its callers.
//!
//! Plain data, shared by the server, the client half of `stayput` and the reconciler. The written
//! contract is `proto/openapi.yaml` and `proto/status.schema.json`; tests compare them.
#![warn(missing_docs)]
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

pub mod checksum;
mod initial_masters;
mod problem;
mod refusal;
mod request;
mod status;

pub use initial_masters::{is_settings_file, without_initial_masters};
pub use problem::{Code, Problem};
pub use refusal::{Accepted, Refusal};
pub use request::{
    ConfigChoice, DrainRequest, MAX_SEQUENCE, MAX_SEQUENCE_JUMP, RequestKind, SEQUENCE_HEADER,
    Span, StartRequest, StopRequest, TIMES_AHEAD_HEADER, UpgradeRequest,
};
pub use status::{
    Archive, Config, ConfigFile, Cursor, Desired, Exit, ExitReason, LastRequest, Manager,
    ManagerError, Pod, Process, Reason, Resume, Run, State, Status,
};

#[cfg(test)]
mod tests;
