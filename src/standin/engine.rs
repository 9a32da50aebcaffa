//! The engine's processes: which of them this one is, and how it becomes the next.
//!
//! The processes and their command lines are those of the real engines, because a supervisor
//! recognizes launcher, server and helper by these alone. An entrypoint becomes, in the same
//! process, either the one JVM (OpenSearch, Elasticsearch up to 8.3) or the launcher JVM that
//! starts the server JVM (Elasticsearch from 8.4).

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

mod cluster;
mod config;
mod data;
mod event;
mod http;
mod launcher;
mod offspring;
mod rest;
mod server;
mod yaml;

use config::Config;
use server::Control;

/// Exit code for a config the engine refuses (sysexits' EX_CONFIG, as the real engines use it).
const EXIT_CONFIG: u8 = 78;
/// Exit code for every other error at the start.
const EXIT_FAILED: u8 = 1;

const ONE_JVM: &str = "org.opensearch.bootstrap.OpenSearch";
const LAUNCHER_JVM: &str = "org.elasticsearch.launcher.CliToolLauncher";
const SERVER_JVM: &str = "org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch";

/// How this program is started again as another process of the engine: `prefix` are the arguments
/// that a program with other jobs needs before it calls [`main`].
struct Myself<'a> {
    prefix: &'a [OsString],
}

impl Myself<'_> {
    /// A command for the role `name`; it looks like a JVM if the role stands for one.
    fn command(&self, arg0: &str, name: &str) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg0(arg0).args(self.prefix).arg(name);
        Ok(command)
    }
}

/// Runs one process of the engine to its end and returns its exit code. `arguments` are those after
/// the program's name and `prefix`.
pub fn main(prefix: &[OsString], arguments: Vec<OsString>) -> u8 {
    let myself = Myself { prefix };
    let role = arguments.first().and_then(|argument| argument.to_str()).unwrap_or_default();
    let result = match role {
        ONE_JVM => configured(|config| server::run(config, Control::Signals, &myself)),
        SERVER_JVM => configured(|config| server::run(config, Control::Launcher, &myself)),
        LAUNCHER_JVM => configured(|config| launcher::run(config, &myself)),
        offspring::ORPHAN_MAKER => offspring::make_orphans(&arguments, &myself),
        offspring::ORPHAN => offspring::orphan(),
        offspring::SETSID_CHILD => offspring::setsid_child(),
        offspring::HELPER => offspring::helper(),
        _ => entrypoint(&arguments, &myself),
    };
    result.unwrap_or_else(|refusal| {
        print_error(&format!("ERROR: {}", refusal.message));
        refusal.code
    })
}

/// Why a process of the engine ends without having done its work.
struct Refusal {
    code: u8,
    message: String,
}

impl Refusal {
    fn config(message: impl Into<String>) -> Self {
        Self { code: EXIT_CONFIG, message: message.into() }
    }

    fn failed(message: impl Into<String>) -> Self {
        Self { code: EXIT_FAILED, message: message.into() }
    }
}

/// Prints a line on stdout. If there is no reader, the engine must not end, as `println!` would
/// make it.
fn print_line(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Prints a line on stderr, with the same rule.
fn print_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What the image's entrypoint script does: find the config, start the helper, become a JVM.
fn entrypoint(arguments: &[OsString], myself: &Myself<'_>) -> Result<u8, Refusal> {
    let directory = match arguments {
        [] => std::env::var_os("ES_PATH_CONF"),
        // The arguments with which the official images call their entrypoints.
        [name] if name == "opensearch" || name == "eswrapper" => std::env::var_os("ES_PATH_CONF"),
        [option, directory] if option == "--config" => Some(directory.clone()),
        _ => None,
    };
    let directory = directory.ok_or_else(|| Refusal {
        code: 64,
        message: "usage: standin-engine --config DIR (or set ES_PATH_CONF)".to_owned(),
    })?;
    let config = Config::read(&PathBuf::from(&directory))?;
    if config.behaviour.helper {
        offspring::start_helper(myself)?;
    }
    let role = if config.behaviour.launcher { LAUNCHER_JVM } else { ONE_JVM };
    let error = match myself.command("java", role) {
        Ok(mut command) => command.env("ES_PATH_CONF", directory).exec(),
        Err(error) => error,
    };
    Err(Refusal::failed(format!("cannot become the engine's process: {error}")))
}

/// Reads the config that the entrypoint's environment names and continues with it. Every process of
/// the engine reads it again, as launcher and server JVM do.
fn configured(go_on: impl FnOnce(Config) -> Result<u8, Refusal>) -> Result<u8, Refusal> {
    let directory = std::env::var_os("ES_PATH_CONF")
        .ok_or_else(|| Refusal::config("ES_PATH_CONF is not set: start the entrypoint instead"))?;
    go_on(Config::read(&PathBuf::from(directory))?)
}
