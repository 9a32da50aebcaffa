//! `run`: reads the settings, sets up the modules, serves, ends with the engine's exit code.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;

use super::USAGE;
use super::boot::{self, Occasion, Parts};
use crate::errors::{ErrorCode, Errors};
use crate::http::{HttpSettings, KeptPair, Limits, Server};
use crate::process::{self, KeptListener, Signals};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{Ended, Handle, Serving, Supervisor, SupervisorParts, Taken};
use crate::worker;
use stayput_http::telemetry::{self, Log};

/// Exit code if the manager cannot be set up: a port or a socket that is in use, a certificate that
/// does not match its key (`EX_UNAVAILABLE` of sysexits).
const UNAVAILABLE: u8 = 69;
/// How long the last lines of the log and the reason of the end may take, each.
const LAST_WRITES: Duration = Duration::from_secs(1);
/// File where the kubelet reads why a container ended.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Supervises the engine; ends with its code, or with 64 and every bad setting.
pub(super) fn run(matches: &ArgMatches, environment: &Environment) -> ExitCode {
    // Before anything that takes time: the kernel drops a signal that PID 1 neither blocks nor handles.
    Signals::block();
    let taken = match Taken::find() {
        Ok(taken) => taken,
        Err(problem) => return report(&[problem], USAGE),
    };
    let settings = || settings::read(matches, environment, io::stderr().is_terminal());
    let settings = || {
        let settings = settings()?;
        // A program that takes over has looked before, so that the engine's manager is not away for longer.
        let problems = if taken.is_none() { boot::problems(&settings) } else { Vec::new() };
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    };
    match make_or_go_back(taken.as_ref(), settings) {
        Ok(settings) => supervise(settings, taken),
        Err(problems) => report(&problems, USAGE),
    }
}

fn report(problems: &[String], code: u8) -> ExitCode {
    let mut stderr = io::stderr();
    for problem in problems {
        // If stderr is closed, the exit code is all there is.
        let _ = writeln!(stderr, "stayput: {problem}");
    }
    ExitCode::from(code)
}

fn supervise(settings: Settings, taken: Option<Taken>) -> ExitCode {
    process::tune_allocator();
    let log = match make_or_go_back(taken.as_ref(), || start_log(&settings)) {
        Ok(log) => log,
        Err(problems) => return report(&problems, UNAVAILABLE),
    };
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = match make_or_go_back(taken.as_ref(), runtime) {
        Ok(runtime) => runtime,
        Err(problems) => return report(&problems, UNAVAILABLE),
    };
    let ended = manage(&runtime, settings, log.clone(), taken);
    // The manager also ends if a disk hangs.
    runtime.shutdown_background();
    match ended {
        Ok(ended) => {
            write_termination_log(ended.message);
            if let Some(log) = log {
                log.flush(LAST_WRITES);
            }
            // An exit code has eight bits.
            ExitCode::from(u8::try_from(ended.code & 0xff).unwrap_or(u8::MAX))
        }
        Err(problems) => {
            write_termination_log(problems.join("; "));
            let Some(log) = log else { return report(&problems, UNAVAILABLE) };
            problems.iter().for_each(|problem| log.print(&format!("stayput: {problem}\n")));
            log.flush(LAST_WRITES);
            ExitCode::from(UNAVAILABLE)
        }
    }
}

/// Starts the log. With an API, the log must not make the manager wait; bare, stderr is written to
/// as by any other init.
fn start_log(settings: &Settings) -> Result<Option<Log>, Vec<String>> {
    let (format, level) = (settings.log.format, settings.log.level);
    if settings.policy.api {
        return telemetry::init_lossy(format, level).map(Some).map_err(|error| {
            vec![format!("cannot set up: the log: {error}; {}", worker::hint(&error))]
        });
    }
    telemetry::init(format, level);
    Ok(None)
}

pub(super) fn runtime() -> Result<Runtime, Vec<String>> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map_err(|error| vec![format!("cannot set up: {error}")])
}

/// Runs until the manager is to end.
fn manage(
    runtime: &Runtime,
    settings: Settings,
    log: Option<Log>,
    taken: Option<Taken>,
) -> Result<Ended, Vec<String>> {
    let (occasion, program, listener) = match &taken {
        None => (Occasion::Start, process::Program::find().ok(), KeptListener::default()),
        Some(taken) => (Occasion::TakeOver, Some(taken.hand_over.program()), taken.listener()),
    };
    let parts = make_or_go_back(taken.as_ref(), || {
        runtime.block_on(boot::parts(&settings, occasion, listener.clone()))
    })?;
    let Parts { signals, supervisor, server, kept_pair } = parts;
    let supervisor = SupervisorParts {
        lines_lost: log.as_ref().map_or_else(|| watch::channel(0).1, Log::lines_lost),
        log,
        program,
        // From here on nothing fails: the program before is not needed any more.
        hand_over: taken.map(|taken| taken.hand_over),
        ..supervisor
    };
    let (errors, serving) = (supervisor.errors.clone(), supervisor.serving.clone());
    runtime.block_on(async {
        let (supervisor, handle, ended) = Supervisor::new(supervisor, signals);
        let serving_now = serving.subscribe();
        let again = Again { settings: settings.http, listener, kept_pair };
        let serve = |server| serve(server, again, handle, errors, serving_now);
        let served = server.map(|server| tokio::spawn(serve(server)));
        let mut supervising = pin!(supervisor.run());
        let ended = tokio::select! {
            () = &mut supervising => None,
            ended = ended => ended.ok(),
        };
        serving.send_replace(Serving::Ended);
        if let Some(served) = served {
            // Requests that wait for the stop are answered while the supervisor still runs.
            tokio::select! {
                () = &mut supervising => {}
                _ = served => {}
            }
        }
        ended.ok_or_else(|| vec!["the supervisor ended without a reason".to_owned()])
    })
}

/// Writes the reason to the kubelet's file, if there is one. Nothing else depends on it, and the
/// disk of the node may hang.
fn write_termination_log(message: String) {
    let (done, written) = mpsc::channel();
    let write = move || {
        let file = OpenOptions::new().write(true).truncate(true).open(TERMINATION_LOG);
        if let Ok(mut file) = file {
            let _ = writeln!(file, "stayput: {message}");
        }
        let _ = done.send(());
    };
    // The engine has ended, so there is a thread again. If not, the reason is only in the log.
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = written.recv_timeout(LAST_WRITES);
    }
}

// Fallback for a manager that another version has executed and that cannot start: PID 1 must not
// end while the engine runs.

/// Delay between a failed attempt and the next one.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Calls `make`. If it fails after an upgrade, executes the previous version again. If that fails,
/// too, retries until one works: the same obstacle stops both, such as a limit on processes that
/// the engine has reached.
pub(super) fn make_or_go_back<T>(
    taken: Option<&Taken>,
    mut make: impl FnMut() -> Result<T, Vec<String>>,
) -> Result<T, Vec<String>> {
    let Some(taken) = taken else { return make() };
    loop {
        let why = match catch_unwind(AssertUnwindSafe(&mut make)) {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(problems)) => problems.join("; "),
            Err(_) => "it panicked, which is an error in stayput".to_owned(),
        };
        taken.go_back(&why);
        // There may be no log yet. If stderr is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "stayput: cannot take over yet, the engine runs on: {why}");
        thread::sleep(RETRY_DELAY);
    }
}

/// Settings, listener and certificate for serving the API again after a failed takeover.
pub(super) struct Again {
    pub(super) settings: HttpSettings,
    pub(super) listener: KeptListener,
    pub(super) kept_pair: Option<KeptPair>,
}

/// Serves until the manager ends.
pub(super) async fn serve(
    mut server: Server,
    again: Again,
    handle: Handle,
    errors: Errors,
    mut serving: watch::Receiver<Serving>,
) {
    // Clients that connect earlier wait in the backlog: before the journal is read, the status would
    // be that of a new pod. If there is no reply, the supervisor has ended, and so does the manager.
    handle.answers().await;
    loop {
        let mut closing = serving.clone();
        let closed = async move {
            // An error if the manager ends.
            let _ = closing.wait_for(|serving| *serving != Serving::Open).await;
        };
        server.serve(handle.clone(), errors.clone(), closed).await;
        if !reopens(&handle, &mut serving).await {
            return;
        }
        server = again.bound(&errors).await;
    }
}

impl Again {
    /// Binds the API, and retries until it works: the pids limit may leave no thread for it now.
    async fn bound(&self, errors: &Errors) -> Server {
        loop {
            let (settings, listener) = (self.settings.clone(), self.listener.clone());
            let kept_pair = self.kept_pair.clone();
            match Server::bind(settings, Limits::default(), errors, listener, kept_pair).await {
                Ok(server) => return server,
                Err(problems) => errors.report(ErrorCode::Api, problems.join("; ")),
            }
            sleep(RETRY_DELAY).await;
        }
    }
}

/// Reports that all connections are closed, and waits. True if the API is to be served again,
/// because nothing has taken over.
async fn reopens(handle: &Handle, serving: &mut watch::Receiver<Serving>) -> bool {
    handle.server_closed().await;
    let next = serving.wait_for(|serving| *serving != Serving::Closed).await;
    next.is_ok_and(|serving| *serving == Serving::Open)
}
