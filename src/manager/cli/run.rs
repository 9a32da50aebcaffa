//! `run`: reads the settings, sets up the modules, ends with the engine's exit code.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use super::boot;
use super::failure::USAGE;
use crate::errors::Errors;
use crate::process::{self, Signals, TempDir};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{Ended, Engine, Prober, Supervisor};
use crate::worker;
use stayput_net::telemetry::{self, Log};

/// The manager cannot be set up: a port or a socket that is in use, a certificate that does not
/// match its key (`EX_UNAVAILABLE` of sysexits).
const UNAVAILABLE: u8 = 69;
/// How long the last lines of the log and the reason of the end may take, each.
const LAST_WRITES: Duration = Duration::from_secs(1);
/// Where the kubelet reads why a container ended.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Supervises the engine; ends with its code, or with 64 and every bad setting.
pub(super) fn run(matches: &ArgMatches, environment: &Environment) -> ExitCode {
    match settings::read(matches, environment, io::stderr().is_terminal()) {
        Ok(settings) => supervise(settings),
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

fn supervise(settings: Settings) -> ExitCode {
    process::tune_allocator();
    let log = match start_log(&settings) {
        Ok(log) => log,
        Err(error) => {
            let problem = format!("cannot set up: the log: {error}; {}", worker::hint(&error));
            return report(&[problem], UNAVAILABLE);
        }
    };
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&[format!("cannot set up: {error}")], UNAVAILABLE),
    };
    let lines_lost = log.as_ref().map_or_else(|| watch::channel(0).1, Log::lines_lost);
    let ended = runtime.block_on(manage(settings, lines_lost));
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

/// With an API, the log must not make it wait; bare, stderr is written to as by any other init.
fn start_log(settings: &Settings) -> io::Result<Option<Log>> {
    let (format, level) = (settings.log.format, settings.log.level);
    if settings.policy.api {
        return telemetry::init_lossy(format, level).map(Some);
    }
    telemetry::init(format, level);
    Ok(None)
}

/// Runs until the manager is to end.
async fn manage(
    settings: Settings,
    lines_lost: watch::Receiver<u64>,
) -> Result<Ended, Vec<String>> {
    let cannot = |what: &str, error: io::Error| vec![format!("cannot {what}: {error}")];
    if !process::is_pid_1() {
        process::become_subreaper().map_err(|error| cannot("adopt orphans", error))?;
    }
    let signals = Signals::install().map_err(|error| cannot("receive signals", error))?;
    let errors = Errors::default();
    let (journal, is_first_start) =
        boot::open_journal(settings.state_dir.as_deref(), &errors).await?;
    // One is enough: a start first stages and then empties the directory.
    let staging = if settings.config.dirs.is_empty() && settings.tmp_dir.is_none() {
        None
    } else {
        Some(boot::worker("staging", &errors)?)
    };
    let config = match &staging {
        Some(staging) if !settings.config.dirs.is_empty() => {
            Some(boot::watch_config(settings.config, staging.clone(), &errors).await?)
        }
        Some(_) | None => None,
    };
    let temp_dir = settings.tmp_dir.as_deref().map(|parent| Arc::new(TempDir::new(parent)));
    let server = if settings.policy.api {
        Some(boot::api(settings.http.clone(), is_first_start, &errors).await?)
    } else {
        None
    };
    let prober = settings.ready.map(|probe| Prober::start(probe, &errors)).transpose();
    let prober = prober.map_err(|error| vec![error.to_string()])?;
    // Bare, nothing is read from processes.
    let reader = match settings.policy.api {
        true => Some(boot::worker("processes", &errors)?),
        false => None,
    };
    let engine = Engine {
        command: settings.command,
        policy: settings.policy,
        prober: prober.map(Arc::new),
        reader,
        config,
        temp_dir: temp_dir.zip(staging),
        journal,
        pod: settings.http.pod,
        errors: errors.clone(),
        lines_lost,
    };
    let (supervisor, handle, ended) = Supervisor::new(engine, signals);
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.map(|server| {
        tokio::spawn(async move {
            // Clients that connect earlier wait in the backlog: before the journal is read, the
            // status would be that of a new pod. If there is no reply, the supervisor has ended, and
            // so does the manager.
            handle.answers().await;
            let stopped = async {
                // Sent when the manager ends; an error if it was dropped.
                let _ = stopped.await;
            };
            server.serve(handle, errors, stopped).await
        })
    });
    let mut supervising = pin!(supervisor.run());
    let ended = tokio::select! {
        () = &mut supervising => None,
        ended = ended => ended.ok(),
    };
    let _ = stop.send(());
    if let Some(serving) = serving {
        // Requests that wait for the stop are answered while the supervisor still runs.
        tokio::select! {
            () = &mut supervising => {}
            _ = serving => {}
        }
    }
    ended.ok_or_else(|| vec!["the supervisor ended without a reason".to_owned()])
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
