//! `run`: reads the settings, sets up the modules, ends with the engine's exit code.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::boot;
use super::failure::USAGE;
use crate::config_watch::ConfigWatch;
use crate::errors::Errors;
use crate::process::{self, Signals, TempDir};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{Ended, Engine, Journal, Supervisor};
use stayput_net::telemetry;

/// The manager cannot be set up: a port or a socket that is in use, a certificate that does not
/// match its key (`EX_UNAVAILABLE` of sysexits).
const UNAVAILABLE: u8 = 69;
/// The thread count for blocking work: journal, config, staging. Further work waits.
const BLOCKING_THREADS: usize = 4;
/// An idle thread costs memory and is seldom needed.
const THREAD_KEEP_ALIVE: Duration = Duration::from_millis(500);
/// How long the first access to a volume may take.
pub(super) const VOLUME_TIMEOUT: Duration = Duration::from_secs(10);
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
    telemetry::init(settings.log.format, settings.log.level);
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return report(&[format!("cannot set up: {error}")], UNAVAILABLE),
    };
    let ended = runtime.block_on(manage(settings));
    // The manager also ends if a disk hangs.
    runtime.shutdown_background();
    match ended {
        Ok(ended) => {
            write_termination_log(&ended.message);
            // An exit code has eight bits.
            ExitCode::from(u8::try_from(ended.code & 0xff).unwrap_or(u8::MAX))
        }
        Err(problems) => {
            write_termination_log(&problems.join("; "));
            report(&problems, UNAVAILABLE)
        }
    }
}

/// Runs until the manager is to end.
async fn manage(settings: Settings) -> Result<Ended, Vec<String>> {
    let cannot = |what: &str, error: io::Error| vec![format!("cannot {what}: {error}")];
    if !process::is_pid_1() {
        process::become_subreaper().map_err(|error| cannot("adopt orphans", error))?;
    }
    let signals = Signals::install().map_err(|error| cannot("receive signals", error))?;
    let journal = settings.state_dir.as_deref().map(Journal::new);
    let errors = Errors::default();
    let is_first_start = boot::is_first_start(journal.clone()).await?;
    let config = if settings.config.dirs.is_empty() {
        None
    } else {
        let dirs = settings.config.dirs.clone();
        let watch =
            timeout(VOLUME_TIMEOUT, ConfigWatch::start(settings.config, errors.clone())).await;
        let watch = watch.map_err(|_| {
            let dirs: Vec<_> = dirs.iter().map(|dir| dir.path.display().to_string()).collect();
            vec![format!(
                "--config {} did not answer within {VOLUME_TIMEOUT:?}: repair the volume",
                dirs.join(", ")
            )]
        })?;
        Some(Arc::new(watch))
    };
    let server = if settings.policy.api {
        Some(boot::api(settings.http.clone(), is_first_start).await?)
    } else {
        None
    };
    let engine = Engine {
        command: settings.command,
        policy: settings.policy,
        probe: settings.ready,
        config,
        temp_dir: settings.tmp_dir.as_deref().map(|parent| Arc::new(TempDir::new(parent))),
        journal,
        pod: settings.http.pod,
        errors: errors.clone(),
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

/// Writes the reason to the kubelet's file, if there is one. Nothing else depends on it.
fn write_termination_log(message: &str) {
    if let Ok(mut file) = OpenOptions::new().write(true).truncate(true).open(TERMINATION_LOG) {
        let _ = writeln!(file, "stayput: {message}");
    }
}
