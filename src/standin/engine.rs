//! The engine's processes: which of them this one is, and how it becomes the next.
//!
//! The processes and their command lines are those of the real engines, because a supervisor
//! recognizes launcher, server and helper by these alone. An entrypoint becomes, in the same
//! process, either the one JVM (OpenSearch, Elasticsearch up to 8.3) or the launcher JVM that
//! starts the server JVM (Elasticsearch from 8.4).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use config::Config;
use server::Control;

mod cluster;
mod config;
mod data;
mod http;
mod rest;
mod server;

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
        LAUNCHER_JVM => configured(|config| run_launcher(config, &myself)),
        server::ORPHAN_MAKER => server::make_orphans(&arguments, &myself),
        server::ORPHAN => server::orphan(),
        server::SETSID_CHILD => server::setsid_child(),
        server::HELPER => server::helper(),
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
        server::start_helper(myself)?;
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

// The launcher process of Elasticsearch from 8.4: it starts the server and ends as that ends.

/// Runs the launcher, and the server as its child, to the end; returns the exit code.
fn run_launcher(config: Config, myself: &Myself<'_>) -> Result<u8, Refusal> {
    let (sender, events) =
        signals().map_err(|error| Refusal::failed(format!("cannot handle signals: {error}")))?;
    let mut server = myself
        .command("java", SERVER_JVM)
        .and_then(|mut command| command.stdin(Stdio::piped()).spawn())
        .map_err(|error| Refusal::failed(format!("cannot start the server: {error}")))?;
    // Our end of the pipe: when this process dies, the server reads the end of file.
    let mut stdin = server.stdin.take();
    thread::spawn(move || {
        let code = server.wait().map_or(EXIT_FAILED, |status| {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            u8::try_from(code).unwrap_or(EXIT_FAILED)
        });
        // A receiver that is gone means that the process is ending anyway.
        let _ = sender.send(Event::ServerExited(code));
    });

    let mut ending = None;
    for event in events {
        match event {
            Event::Signal(signal) => {
                let code = exit_code_after(signal, config.behaviour.ignore_term);
                if let (Some(code), None) = (code, ending) {
                    ending = Some(code);
                    if let Some(stdin) = &mut stdin {
                        // A server that has ended already is reported by its own event.
                        let _ = stdin.write_all(&[SHUTDOWN_MARKER]);
                    }
                }
            }
            Event::ServerExited(code) => {
                return Ok(ending.unwrap_or_else(|| {
                    print_error(&format!(
                        "ERROR: Elasticsearch exited unexpectedly, with exit code {code}"
                    ));
                    code
                }));
            }
            // Only a server is started by a launcher.
            Event::ShutdownMarker | Event::LauncherGone => {}
        }
    }
    Ok(EXIT_FAILED)
}

// The events of a process of the engine, as one queue.

/// One event.
enum Event {
    /// A signal arrived.
    Signal(i32),
    /// The launcher asked the server to shut down.
    ShutdownMarker,
    /// The launcher is gone.
    LauncherGone,
    /// The server ended, with the exit code a shell would show.
    ServerExited(u8),
}

/// The byte that a launcher writes to its server's stdin to shut it down.
const SHUTDOWN_MARKER: u8 = 0x1B;

/// Makes signals that a JVM handles into events.
fn signals() -> io::Result<(Sender<Event>, Receiver<Event>)> {
    // signal-hook sets a handler before it has an action for it: a TERM in between would be lost,
    // and a JVM loses none.
    // and a JVM loses none.
    pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    let (sender, receiver) = mpsc::channel();
    let events = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok((sender, receiver))
}

/// Watches stdin as the server JVM does that has a launcher.
fn watch_launcher(events: Sender<Event>) {
    thread::spawn(move || {
        let mut byte = [0];
        let event = loop {
            match io::stdin().read_exact(&mut byte) {
                Ok(()) if byte == [SHUTDOWN_MARKER] => break Event::ShutdownMarker,
                Ok(()) => {}
                Err(_) => break Event::LauncherGone,
            }
        };
        // A receiver that is gone means that the process is ending anyway.
        let _ = events.send(event);
    });
}

/// The exit code of a JVM that ran its shutdown hooks because of `signal`, if it ends it at all.
fn exit_code_after(signal: i32, ignore_term: bool) -> Option<u8> {
    match signal {
        SIGTERM if ignore_term => None,
        SIGTERM => Some(143),
        SIGINT => Some(130),
        SIGHUP => Some(129),
        SIGQUIT => {
            print_line(&format!("Full thread dump stand-in engine, pid {}:", std::process::id()));
            None
        }
        _ => None,
    }
}
