//! `upgrade`: another version of the manager takes over. `check-upgrade`: says whether it can.

use std::ffi::OsString;
use std::io::Write;

use tokio::time::{Instant, sleep};

use super::args::VERSION;
use super::boot::{self, Occasion};
use super::failure::Failure;
use super::poll::RETRY_DELAY;
use super::{places, run};
use crate::errors::ErrorCode;
use crate::process::{self, KeptListener};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{CAN_TAKE_OVER, HandOver};
use stayput_api::{Span, Status};
use stayput_http::manager_client::{ClientError, ManagerClient};

/// Requests an upgrade and waits until another boot answers.
pub(super) async fn upgrade(
    client: &ManagerClient,
    timeout: Span,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout.to_duration();
    let before = client.upgrade().await?;
    let from = before.status.manager.version;
    if before.done {
        writeln!(out, "version {from} runs already: the manager's file is the program that runs")?;
        return Ok(());
    }
    while Instant::now() < deadline {
        match client.status().await {
            Ok(answer) => {
                if let Some(message) = failure(&answer.status) {
                    return Err(Failure::Failed(message));
                }
                if answer.status.manager.boot_id != before.status.manager.boot_id {
                    let to = answer.status.manager.version;
                    writeln!(out, "version {to} has taken over from version {from}")?;
                    return Ok(());
                }
            }
            // Between the two nobody serves the socket, and a connection may be closed.
            Err(ClientError::NotReachable(_) | ClientError::Unanswered(_)) => {}
            Err(error) => return Err(error.into()),
        }
        sleep(RETRY_DELAY).await;
    }
    Err(Failure::TimedOut(format!("version {from} is not replaced yet: check its status and log")))
}

fn failure(status: &Status) -> Option<String> {
    let code = ErrorCode::Upgrade.as_str();
    let error = status.manager.errors.iter().find(|error| error.code == code)?;
    Some(error.message.clone())
}

/// Says that this program can take over from the manager that was started with these arguments.
pub(super) fn check(
    state: i32,
    args: Vec<OsString>,
    environment: &Environment,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if let Err(problems) = can_take_over(state, args, environment) {
        let problems = problems.join("; ");
        // The manager reads stdout.
        writeln!(out, "{problems}")?;
        return Err(Failure::Failed(problems));
    }
    writeln!(out, "{CAN_TAKE_OVER}{}", VERSION.as_str())?;
    Ok(())
}

fn can_take_over(
    state: i32,
    args: Vec<OsString>,
    environment: &Environment,
) -> Result<(), Vec<String>> {
    let state = process::handed_over(state)
        .map_err(|error| vec![format!("the handed-over state cannot be read: {error}")])?;
    HandOver::parse(&state).map_err(|error| vec![error.to_string()])?;
    let args = [OsString::from("stayput")].into_iter().chain(args);
    let matches =
        super::definition().try_get_matches_from(args).map_err(|error| vec![error.to_string()])?;
    let Some(run) = matches.subcommand_matches("run") else {
        return Err(vec!["the manager was not started by `stayput run`".to_owned()]);
    };
    let settings = settings::read(run, environment, false)?;
    let problems = places::problems(&settings);
    if problems.is_empty() { rehearse(settings) } else { Err(problems) }
}

/// Makes all that the manager will make, beside the one that runs: files and sockets of that one are
/// not written to or bound.
fn rehearse(mut settings: Settings) -> Result<(), Vec<String>> {
    (settings.http.listen, settings.http.socket) = (None, None);
    settings.config.stage.clear();
    settings.config.keep_last_good = None;
    let runtime = run::runtime()?;
    let parts = boot::parts(&settings, Occasion::Rehearsal, KeptListener::default());
    runtime.block_on(parts)?;
    // A thread may wait for a disk.
    runtime.shutdown_background();
    Ok(())
}
