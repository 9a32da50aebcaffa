//! `kubectl stayput`: shows what a restart does and why it waits, and requests restarts.
//!
//! The plugin decides nothing. It reads the status that the reconciler has written on a SearchCluster and its
//! pods into one model ([`view`], and [`progress`] for what has changed), renders that ([`text`] and [`html`] for
//! people, [`json`] for programs; all pure), and writes annotations ([`actions`]). It never calls an engine or a
//! manager. What only they know comes from the reconciler as a snapshot ([`snapshot`]); a dry run is computed
//! from it by the reconciler's own rules. [`doctor`] says what is wrong around
//! a SearchCluster; [`detach`] takes it away and leaves its pods. [`inject`] changes manifests and asks nobody.
//! [`init`] makes the objects that a cluster needs. [`ui`] shows a cluster in a browser.

mod actions;
mod apiserver;
mod args;
mod complete;
mod detach;
mod diff;
mod doctor;
mod error;
mod format;
mod html;
mod init;
mod inject;
mod json;
mod leader;
mod options;
mod port_forward;
mod printer;
mod progress;
mod run;
mod runbook;
mod selection;
mod session;
mod snapshot;
mod text;
mod ui;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use json::schema;
pub use run::{definition, main};
