//! Pages for people, one file for each command: from a view to text, and nothing else.

mod clusters;
mod common;
mod diff;
mod doctor;
mod dry_run;
mod forecast;
mod history;
mod init;
mod plan;
mod status;
mod why;

pub(super) use clusters::status_of_all;
pub(super) use common::{NOT_PROCESSED, request_summary, tone_of_outcome};
pub(super) use diff::diff;
pub(super) use doctor::doctor;
pub(super) use dry_run::dry_run;
pub(super) use forecast::forecast;
pub(super) use history::{history, history_of_all, nodes_by_step, reason as reason_in_history};
pub(super) use init::init;
pub(super) use plan::plan;
pub(super) use status::status;
pub(super) use why::{why, why_in_snapshot};
