//! The command line: `run` is the manager, all other commands are its client or a tool.
//!
//! In the library, so that an example can execute itself as the manager.

mod address;
mod args;
mod best_effort_output;
mod boot;
mod checksum;
mod control;
mod failure;
mod fallback;
mod install;
mod places;
mod poll;
mod render;
mod run;
mod serve;
mod token;
mod upgrade;
mod usage;
mod wait;
mod warm;

use std::ffi::OsString;
use std::io::{self, Write};
use std::pin::Pin;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::settings::Environment;
use args::{Cli, ClientArgs, Command};
use best_effort_output::BestEffortOutput;
use control::ControlRequest;
use failure::{Failure, USAGE};
use stayput_http::manager_client::ManagerClient;

/// Every command and option of `stayput`, also for man pages.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes of the client commands: 0 done; 1 refused or failed, with the manager's message; 2
/// not reachable; 64 usage; 124 not done in time. `run` ends with the engine's code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = definition().try_get_matches_from(args).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((matches, cli))
    });
    let (matches, cli) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
            // Help and version are no errors, and go to stdout. If neither can be written, there is
            // no reader.
            let _ = usage::with_tip(error).print();
            return code;
        }
    };
    let environment = Environment::of_process();
    let mut out = io::stdout();
    let outcome = command(cli.command, &matches, &environment, &mut out)
        .and_then(|code| out.flush().map(|()| code).map_err(Failure::Output));
    outcome.unwrap_or_else(|failure| failure.report())
}

fn command(
    command: Command,
    matches: &ArgMatches,
    environment: &Environment,
    out: &mut impl Write,
) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(_) => {
            // The settings of `run` are read from the matches, which show what was written and
            // where.
            let run = matches.subcommand_matches("run");
            return Ok(run.map_or(ExitCode::from(USAGE), |run| run::run(run, environment)));
        }
        Command::Status { client, json, watch } => {
            with(&client, environment, async |client| {
                if watch {
                    wait::watch(&client, json, out).await
                } else {
                    wait::status(&client, json, out).await
                }
            })?;
        }
        Command::Wait { client, goal, timeout, json } => {
            with(&client, environment, async |client| {
                wait::wait(&client, &goal, timeout, json, out).await
            })?;
        }
        Command::Stop { client, request, wait } => {
            let stop = ControlRequest::Stop(request.into_request());
            to_its_end(&client, environment, out, async |client, out| {
                control::send(&client, stop, &wait, out).await
            })?;
        }
        Command::Start { client, request, wait } => {
            let start = ControlRequest::Start(request.into_request());
            to_its_end(&client, environment, out, async |client, out| {
                control::send(&client, start, &wait, out).await
            })?;
        }
        Command::Restart { client, request, wait } => {
            to_its_end(&client, environment, out, async |client, out| {
                control::restart(&client, request, &wait, out).await
            })?;
        }
        Command::Checksum(args) => checksum::print(args, out)?,
        Command::Token(args) => token::print(&args, out)?,
        Command::Install { dir } => {
            let path =
                install::install(&dir).map_err(|error| Failure::Failed(error.to_string()))?;
            writeln!(out, "{}", path.display())?;
        }
        Command::Warm(args) => warm::make(args, out)?,
        Command::Upgrade { client, timeout } => {
            with(&client, environment, async |client| {
                upgrade::upgrade(&client, timeout, out).await
            })?;
        }
        Command::CheckUpgrade { state, args } => upgrade::check(state, args, environment, out)?,
        Command::Version => writeln!(out, "stayput {}", args::VERSION.as_str())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a client command that changes the engine. The command goes on if its output cannot be
/// written any more.
fn to_its_end<W: Write>(
    client: &ClientArgs,
    environment: &Environment,
    out: &mut W,
    command: impl AsyncFnOnce(ManagerClient, &mut BestEffortOutput<'_, W>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = BestEffortOutput::new(out);
    let result = with(client, environment, async |client| command(client, &mut out).await);
    out.result(result)
}

/// Runs a client command, on one thread.
fn with(
    client: &ClientArgs,
    environment: &Environment,
    command: impl AsyncFnOnce(ManagerClient) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let address =
        address::address(client, environment).map_err(|error| Failure::Usage(error.to_string()))?;
    let client = ManagerClient::new(address)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot set up: {error}")))?;
    // Boxed, so that the runtime's code is there once, and not for each command.
    let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(command(client));
    runtime.block_on(command)
}
