//! The command line: `run` is the manager, all other commands are its client or a tool.
//!
//! In the library, so that an example can execute itself as the manager.

mod address;
mod args;
mod boot;
mod control;
mod render;
mod run;
mod tools;
mod wait;

use std::ffi::OsString;
use std::io::{self, Write};
use std::pin::Pin;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::settings::Environment;
use args::{Cli, ClientArgs, Command};
use control::ControlRequest;
use stayput_http::manager_client::{ClientError, ManagerClient};
use stayput_http::terminal::plain;

/// Every command and option of `stayput`, also for man pages.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// Runs the program with `args`, the first of which is its own name.
///
/// Exit codes of the client commands: 0 done; 1 refused or failed, with the manager's message; 2
/// not reachable; 64 usage; 124 not done in time. `run` ends with the engine's code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = definition().try_get_matches_from(&args).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((matches, cli))
    });
    let (matches, cli) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
            // Help and version are no errors, and go to stdout. If neither can be written, there is
            // no reader.
            let _ = with_tip(error, &args).print();
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
        Command::Checksum(args) => tools::print_checksum(args, out)?,
        Command::Token(args) => tools::print_token(&args, out)?,
        Command::Install { dir } => {
            let path = tools::install(&dir).map_err(Failure::Failed)?;
            writeln!(out, "{}", path.display())?;
        }
        Command::Warm(args) => tools::make_archive(args, out)?,
        Command::Upgrade { client, timeout } => {
            with(&client, environment, async |client| {
                control::upgrade(&client, timeout, out).await
            })?;
        }
        Command::CheckUpgrade { state, args } => control::check(state, args, environment, out)?,
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
    let address = address::address(client, environment).map_err(Failure::Usage)?;
    let client = ManagerClient::new(address)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot set up: {error}")))?;
    // Boxed, so that the runtime's code is there once, and not for each command.
    let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(command(client));
    runtime.block_on(command)
}

/// Refused or failed.
const FAILED: u8 = 1;
/// The manager cannot be reached, or did not answer.
const NOT_REACHABLE: u8 = 2;
/// The command line is wrong (`EX_USAGE` of sysexits).
const USAGE: u8 = 64;
/// Not done in time; the code of coreutils' `timeout`.
const TIMED_OUT: u8 = 124;

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// The manager refused, or gave no good answer.
    Client(ClientError),
    /// The command line is wrong.
    Usage(String),
    /// The command itself failed.
    Failed(String),
    /// A signal ended the command.
    Signal(u8, String),
    /// The command was not done within its timeout.
    TimedOut(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Writes the message to stderr.
    fn report(&self) -> ExitCode {
        let (code, message) = match self {
            Self::Client(error @ ClientError::Refused(_)) => (FAILED, format!("refused: {error}")),
            Self::Client(error @ (ClientError::Protocol(_) | ClientError::WrongPod(_))) => {
                (FAILED, error.to_string())
            }
            Self::Client(error @ ClientError::Credentials(_)) => (USAGE, error.to_string()),
            Self::Client(
                error @ (ClientError::NotReachable(_)
                | ClientError::Untrusted(_)
                | ClientError::Unanswered(_)),
            ) => (NOT_REACHABLE, error.to_string()),
            Self::Usage(message) => (USAGE, message.clone()),
            Self::Failed(message) => (FAILED, message.clone()),
            Self::Signal(signal, message) => (128 + signal, message.clone()),
            Self::TimedOut(message) => (TIMED_OUT, message.clone()),
            // `stayput status | head` closes the output early; this needs no message.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::from(FAILED);
            }
            Self::Output(error) => (FAILED, format!("cannot write the output: {error}")),
        };
        // If stderr is closed as well, the exit code is all there is.
        let _ = writeln!(io::stderr(), "stayput: {}", plain(&message));
        ExitCode::from(code)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The error, with a tip for a mistake that clap has no advice for. The program has no option before
/// the name of its command, so that is the first argument after its own name.
fn with_tip(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let command = args.get(1).and_then(|name| name.to_str());
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip(command.unwrap_or_default(), argument)
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn tip(command: &str, argument: &str) -> Option<String> {
    match (command, argument) {
        ("run", word) if !word.starts_with('-') => {
            Some(format!("write the engine's command after --, as in -- {word}"))
        }
        ("stop" | "start" | "restart", "--wait") => {
            Some("it waits unless --no-wait is given; --timeout TIME says how long".to_owned())
        }
        _ => None,
    }
}

/// An output to which writing never fails; the first error is kept. A request is carried out to its end even if
/// nobody reads about it any more: a stop whose start is not sent would keep the engine down.
#[derive(Debug)]
struct BestEffortOutput<'a, W> {
    out: &'a mut W,
    failed: io::Result<()>,
}

impl<'a, W: Write> BestEffortOutput<'a, W> {
    const fn new(out: &'a mut W) -> Self {
        Self { out, failed: Ok(()) }
    }

    /// The result of a command; if it is good, whether its output could be written.
    fn result(self, of: Result<(), Failure>) -> Result<(), Failure> {
        of.and(self.failed.map_err(Failure::Output))
    }
}

impl<W: Write> Write for BestEffortOutput<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_ok() {
            self.failed = self.out.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed.is_ok() {
            self.failed = self.out.flush();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::args::Cli;
    use super::*;

    #[test]
    fn usual_mistakes_get_a_tip() {
        for (line, tip) in [
            ("stayput run sleep 1", "tip: write the engine's command after --, as in -- sleep"),
            ("stayput run --socket s sleep 1", "as in -- sleep"),
            ("stayput stop --wait 10m", "tip: it waits unless --no-wait is given; --timeout TIME"),
            ("stayput run --redy http://x -- x", "a similar argument exists: '--ready'"),
            ("stayput stop --grace -5", "\"-5\" is not a duration"),
            ("stayput wait --for ready --timeout -5s", "\"-5s\" is not a duration"),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = Cli::command().try_get_matches_from(&args).unwrap_err();
            let text = with_tip(error, &args).to_string();
            assert!(text.contains(tip), "{text}");
        }
    }
}
