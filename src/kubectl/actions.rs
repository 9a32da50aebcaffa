//! Commands that change something: each writes an annotation (a request with our finalizer) or
//! `spec.paused`, and only onto objects that have not changed since they were read.

mod attempts;
mod cancel;
mod confirm;
mod error;
mod keep_stopped;
mod patch;
mod pause;
mod report;
mod restart;

pub(super) use attempts::Attempts;
pub(super) use cancel::cancel;
pub(super) use confirm::confirm;
pub(super) use error::ActionError;
pub(super) use keep_stopped::{start, stop};
pub(super) use pause::{pause, resume};
pub(super) use report::ActionReport;
pub(super) use restart::restart;
