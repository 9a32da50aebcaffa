//! Commands that change something: each writes an annotation (a request with our finalizer) or
//! `spec.paused`, and only onto objects that have not changed since they were read.

pub(crate) mod attempts;
mod cancel;
mod confirm;
pub(crate) mod error;
mod keep_stopped;
mod patch;
mod pause;
pub(crate) mod report;
mod restart;

pub(crate) use crate::actions::cancel::cancel;
pub(crate) use crate::actions::confirm::confirm;
pub(crate) use crate::actions::keep_stopped::{start, stop};
pub(crate) use crate::actions::pause::{pause, resume};
pub(crate) use crate::actions::restart::restart;
