//! Our own options: command line and environment in, one checked [`Settings`] out.
//!
//! Two stages. [`RunArgs`] is what was written, unread; `check` reads every value, applies the
//! rules between options, and reports all problems at once, so that nobody fixes them one restart
//! at a time. Nothing here touches a file or a port.

mod args;
mod check;
mod environment;
mod pod;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config_watch::ConfigSettings;
use crate::http::HttpSettings;
use crate::lifecycle::Policy;
use crate::supervisor::Probe;
use stayput_net::telemetry::LogFormat;

pub use args::RunArgs;
pub use environment::Environment;
pub(crate) use values::{config_dir, glob};

/// Everything `stayput run` was told, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine's command and its arguments, as given.
    pub command: Vec<OsString>,
    /// The API: where it listens and who may call.
    pub http: HttpSettings,
    /// The engine's config; no directories without `--config`.
    pub config: ConfigSettings,
    /// How the engine is treated.
    pub policy: Policy,
    /// How to tell that the engine is ready.
    pub ready: Option<Probe>,
    /// Where intent survives a restart of the container.
    pub state_dir: Option<PathBuf>,
    /// Where the engine's temporary directory is made.
    pub tmp_dir: Option<PathBuf>,
    /// The manager's own log.
    pub log: LogSettings,
    /// What is odd but does no harm, in sentences; for the log.
    pub warnings: Vec<String>,
}

/// The manager's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// What is worth a line.
    pub level: tracing::level_filters::LevelFilter,
}

/// Reads the settings of `run` from its parsed command line and the environment.
///
/// `on_terminal` tells whether stderr is one: people get text, collectors get the JSON lines they
/// parse from the engine as well.
///
/// # Errors
/// Every problem, each a sentence that names the option and the remedy.
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
