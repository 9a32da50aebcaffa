//! `run`: settings in, rooms wired together, the engine's exit code out.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::failure::USAGE;
use crate::config_watch::ConfigWatch;
use crate::http::{Limits, Server};
use crate::process::{self, Signals, TempDir};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{Ended, Engine, Journal, Supervisor};
use stayput_net::telemetry;

/// What cannot be set up at the start: a port or a socket that is taken, a certificate that does
/// not match (EX_UNAVAILABLE of sysexits.h).
const UNAVAILABLE: u8 = 69;
/// Blocking work: journal, config, staging. More waits in line.
const BLOCKING_THREADS: usize = 4;
/// An idle thread would cost memory; a blocked one is not needed often.
const THREAD_KEEP_ALIVE: Duration = Duration::from_millis(500);
/// How long a volume may take to be looked at before anything runs.
const FIRST_LOOK: Duration = Duration::from_secs(10);
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
        // If stderr is gone, the exit code has to do.
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
    // A disk that hangs must not keep the manager from ending.
    runtime.shutdown_background();
    match ended {
        Ok(ended) => {
            write_termination_log(&ended.message);
            // A wait status has eight bits.
            ExitCode::from(u8::try_from(ended.code & 0xff).unwrap_or(u8::MAX))
        }
        Err(problems) => {
            write_termination_log(&problems.join("; "));
            report(&problems, UNAVAILABLE)
        }
    }
}

/// Runs everything until the manager is to end.
async fn manage(settings: Settings) -> Result<Ended, Vec<String>> {
    let cannot = |what: &str, error: io::Error| vec![format!("cannot {what}: {error}")];
    if !process::is_pid_1() {
        process::become_subreaper().map_err(|error| cannot("adopt orphans", error))?;
    }
    let signals = Signals::install().map_err(|error| cannot("receive signals", error))?;
    let journal = settings.state_dir.as_deref().map(Journal::new);
    if let Some(journal) = journal.clone() {
        // One that hangs is the supervisor's business: it must not keep the engine down.
        let checked = timeout(FIRST_LOOK, spawn_blocking(move || journal.check())).await;
        if let Ok(Ok(Err(problem))) = checked {
            return Err(vec![problem.to_string()]);
        }
    }
    let config = if settings.config.dirs.is_empty() {
        None
    } else {
        let dirs = settings.config.dirs.clone();
        let watch = timeout(FIRST_LOOK, ConfigWatch::start(settings.config)).await;
        let watch = watch.map_err(|_| {
            let dirs: Vec<_> = dirs.iter().map(|dir| dir.path.display().to_string()).collect();
            vec![format!(
                "--config {} did not answer within {FIRST_LOOK:?}: repair the volume",
                dirs.join(", ")
            )]
        })?;
        Some(Arc::new(watch))
    };
    let server = if settings.policy.api {
        Some(Server::bind(settings.http.clone(), Limits::default()).await?)
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
    };
    let (supervisor, handle, ended) = Supervisor::new(engine, signals);
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.map(|server| {
        tokio::spawn(async move {
            // Clients that come earlier wait in the backlog: before the journal was read the status
            // would tell them of a fresh pod. Not answered: the supervisor ended, and so do we.
            handle.answers().await;
            let stopped = async {
                // Sent when the manager ends; dropped when it is torn down.
                let _ = stopped.await;
            };
            server.serve(handle, stopped).await
        })
    });
    let mut supervising = pin!(supervisor.run());
    let ended = tokio::select! {
        () = &mut supervising => None,
        ended = ended => ended.ok(),
    };
    let _ = stop.send(());
    if let Some(serving) = serving {
        // Whoever waits for a stop is told that it came, by a supervisor that still answers.
        tokio::select! {
            () = &mut supervising => {}
            _ = serving => {}
        }
    }
    ended.ok_or_else(|| vec!["the supervisor ended without a reason".to_owned()])
}

/// Tells the kubelet why, where it wants to know. Nothing else depends on it.
fn write_termination_log(message: &str) {
    if let Ok(mut file) = OpenOptions::new().write(true).truncate(true).open(TERMINATION_LOG) {
        let _ = writeln!(file, "stayput: {message}");
    }
}
