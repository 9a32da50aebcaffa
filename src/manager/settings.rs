//! The manager's own options: command line and environment in, one checked [`Settings`] out.
//!
//! Two steps. [`RunArgs`] has the values as they were written; `check` reads every value, applies
//! the rules between options, and reports all problems at once, so that users need not fix them one
//! restart at a time. Nothing here opens a file or a port.

mod args;
mod check;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config_watch::ConfigSettings;
use crate::http::HttpSettings;
use crate::lifecycle::Policy;
use crate::supervisor::Probe;
use stayput_http::telemetry::LogFormat;

pub use args::RunArgs;
pub use values::Environment;
pub(crate) use values::{config_dir, glob};

/// All settings of `stayput run`, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine's command and its arguments, as given.
    pub command: Vec<OsString>,
    /// The API: its addresses and callers.
    pub http: HttpSettings,
    /// The engine's config; no directories without `--config`.
    pub config: ConfigSettings,
    /// How the engine is started and stopped.
    pub policy: Policy,
    /// The readiness probe of the engine.
    pub ready: Option<Probe>,
    /// Directory of the journal and of the last good config.
    pub state_dir: Option<PathBuf>,
    /// Directory in which the engine's temporary directory is made.
    pub tmp_dir: Option<PathBuf>,
    /// File with variables of the engine.
    pub environment: Option<PathBuf>,
    pub log: LogSettings,
    /// Warnings for the log: probably a mistake, but not an error.
    pub warnings: Vec<String>,
}

/// The manager's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    pub format: LogFormat,
    pub level: tracing::level_filters::LevelFilter,
}

/// Reads the settings of `run` from its parsed command line and the environment.
///
/// `on_terminal`: stderr is a terminal, so the log is text for people; otherwise it is JSON lines for
/// log collectors.
///
/// # Errors
/// Every problem: each message names the option and says what to do.
pub fn read(
    cli: &clap::ArgMatches,
    environment: &Environment,
    on_terminal: bool,
) -> Result<Settings, Vec<String>> {
    let written = args::written(cli, environment);
    check::check(written, environment, on_terminal)
}

#[cfg(test)]
mod tests;
