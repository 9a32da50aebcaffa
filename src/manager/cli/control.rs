//! `stop`, `start`, `restart` and `upgrade`: send a request, wait until it is done, print the result.
//!
//! The manager decides when the request is done: it delays its answer until then. The status is
//! polled at the same time, only to print changes.

use std::convert::Infallible;
use std::ffi::OsString;
use std::future;
use std::io::Write;
use std::time::Duration;

use tokio::time::{self, Instant, sleep};

use super::args::{RestartArgs, TimeoutArgs, VERSION, WaitArgs};
use super::boot::{self, Occasion};
use super::render;
use super::wait::{ANSWER_DELAY, POLL_TIMEOUT, RETRY_DELAY, Report, StatusPoller};
use super::{BestEffortOutput, Failure, run};
use crate::errors::ErrorCode;
use crate::http::{Outcome, start_outcome, stop_outcome};
use crate::process::{self, KeptListener};
use crate::settings::{self, Environment, Settings};
use crate::supervisor::{CAN_TAKE_OVER, HandOver};
use stayput_api::{Code, ConfigChoice, Span, StartRequest, Status, StopRequest};
use stayput_http::manager_client::{Answer, ClientError, ManagerClient};

/// How long the manager may delay one answer. After that the request is sent again with the same
/// sequence, so that the manager recognizes the retry.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A stop or a start.
#[derive(Debug)]
pub(super) enum ControlRequest {
    Stop(StopRequest),
    Start(StartRequest),
}

impl ControlRequest {
    async fn send(
        &self,
        client: &ManagerClient,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        match self {
            Self::Stop(request) => client.stop(request, wait).await,
            Self::Start(request) => client.start(request, wait).await,
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Stop(_) => "stop",
            Self::Start(_) => "start",
        }
    }

    const fn goal(&self) -> &'static str {
        match self {
            Self::Stop(_) => "stopped",
            Self::Start(_) => "running",
        }
    }

    /// Makes this a retry of the request that was accepted. Returns its sequence.
    fn make_retry(&mut self, accepted: &Answer) -> u64 {
        let sequence = match self {
            Self::Stop(request) => &mut request.sequence,
            Self::Start(request) => &mut request.sequence,
        };
        // An earlier version does not name it; its status may be about a later request.
        *sequence.get_or_insert(accepted.sequence.unwrap_or(accepted.status.sequence))
    }

    /// Outcome of the request by a status; `None` while it goes on.
    fn end(&self, sequence: u64, status: &Status) -> Option<Outcome> {
        match self {
            Self::Stop(_) => stop_outcome(sequence, status),
            Self::Start(request) => start_outcome(sequence, request, status),
        }
    }

    fn not_done(&self, timeout: Span, status: &Status) -> Failure {
        Failure::TimedOut(format!(
            "the {} is not done after {}, and continues: the engine is {}. \
             Continue to wait with: stayput wait --for {}",
            self.name(),
            humantime::format_duration(timeout.to_duration()),
            render::summary(status),
            self.goal(),
        ))
    }
}

/// Sends a stop or a start, and waits until it is done unless `--no-wait` is given.
pub(super) async fn send(
    client: &ManagerClient,
    mut request: ControlRequest,
    args: &WaitArgs,
    out: &mut BestEffortOutput<'_, impl Write>,
) -> Result<(), Failure> {
    let TimeoutArgs { timeout, json } = args.timeout;
    let mut report = Report::new(out, json);
    let answer = if args.no_wait {
        let answer = report.checked(request.send(client, None).await)?;
        report.change(&answer.status)?;
        answer
    } else {
        until_done(client, &mut request, timeout, &mut report).await?
    };
    report.answer(&answer)
}

/// Stops the engine and starts it again.
pub(super) async fn restart(
    client: &ManagerClient,
    args: RestartArgs,
    timeout: &TimeoutArgs,
    out: &mut BestEffortOutput<'_, impl Write>,
) -> Result<(), Failure> {
    let TimeoutArgs { timeout, json } = *timeout;
    let (stop, mut start) = args.into_requests();
    if let Some(status) = current(client).await?
        && let Some(obstacle) = obstacle(&start, &status)
    {
        return Err(Failure::Failed(format!("nothing was stopped: {obstacle}")));
    }
    let mut report = Report::new(out, json);
    let start_command = start_command(&start);
    let mut stop = ControlRequest::Stop(stop);
    let stopped = until_done(client, &mut stop, timeout, &mut report).await;
    let stopped = stopped.map_err(|failure| match failure {
        Failure::TimedOut(message) => Failure::TimedOut(format!(
            "{message}. No start follows: when the engine is stopped, run: {start_command}"
        )),
        other => other,
    })?;
    // The number after that of our own stop: if another client has sent a request since, our start
    // is refused. It must not start an engine that another client has stopped.
    start.sequence = Some(stop.make_retry(&stopped) + 1);
    let mut start = ControlRequest::Start(start);
    match until_done(client, &mut start, timeout, &mut report).await {
        Ok(answer) => report.answer(&answer),
        Err(failure) => {
            if let Failure::Client(error) = &failure {
                let outcome = match error {
                    ClientError::Unanswered(_) | ClientError::Protocol(_) => {
                        "whether it is started again is not known"
                    }
                    ClientError::Credentials(_)
                    | ClientError::NotReachable(_)
                    | ClientError::Untrusted(_)
                    | ClientError::Refused(_)
                    | ClientError::WrongPod(_) => "it is not started again",
                };
                let advice = format!(
                    "stayput: the engine was stopped, and {outcome}; when the problem below is \
                     solved, run: {start_command}"
                );
                // On stderr, so that stdout stays JSON with --json.
                let _ = writeln!(std::io::stderr(), "{advice}");
            }
            Err(failure)
        }
    }
}

/// The status, if this client may read it: a token may allow control alone.
async fn current(client: &ManagerClient) -> Result<Option<Status>, Failure> {
    match client.status().await {
        Ok(answer) => Ok(Some(answer.status)),
        Err(ClientError::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reason why the start after the stop would be refused, if that is known before the engine is stopped.
fn obstacle(start: &StartRequest, status: &Status) -> Option<String> {
    let config = status.config.as_ref();
    let mounted = config.and_then(|config| config.checksum.as_deref());
    match (&start.checksum, start.config) {
        (Some(wanted), _) if mounted != Some(wanted) => {
            let mounted = mounted.unwrap_or("not known");
            Some(format!(
                "the mounted config is {mounted}, not {wanted}: the start would be refused"
            ))
        }
        (None, ConfigChoice::LastGood)
            if config.is_none_or(|config| config.last_good.is_none()) =>
        {
            Some("there is no last good config: the start would be refused".into())
        }
        (Some(_) | None, ConfigChoice::Mounted | ConfigChoice::LastGood) => None,
    }
}

fn start_command(start: &StartRequest) -> String {
    match (&start.checksum, start.config) {
        (Some(checksum), _) => format!("stayput start --checksum {checksum}"),
        (None, ConfigChoice::LastGood) => "stayput start --last-good".into(),
        (None, ConfigChoice::Mounted) => "stayput start".into(),
    }
}

async fn until_done(
    client: &ManagerClient,
    request: &mut ControlRequest,
    timeout: Span,
    report: &mut Report<'_>,
) -> Result<Answer, Failure> {
    let deadline = Instant::now() + timeout.to_duration();
    let mut poller = StatusPoller::new(client, POLL_TIMEOUT);
    let mut accepted = None;
    loop {
        let sent = Instant::now();
        let left = deadline.saturating_duration_since(sent);
        let outcome = {
            let printing = print_changes(&mut poller, report);
            tokio::select! {
                biased;
                outcome = request.send(client, Some(left.min(MAX_WAIT))) => outcome,
                never = printing => match never {},
                // The manager must have answered by now.
                () = time::sleep_until(deadline + ANSWER_DELAY) => {
                    return Err(Failure::TimedOut(format!(
                        "the manager did not answer within {}, and may have acted on the {}: check its \
                         status",
                        humantime::format_duration(timeout.to_duration()),
                        request.name(),
                    )));
                }
            }
        };
        if let (Some(sequence), Err(ClientError::Refused(refused))) = (accepted, &outcome)
            && refused.problem.code == Code::StaleSequence
        {
            // Another request was judged since, so this one cannot be sent again.
            let end = |status: &Status| request.end(sequence, status);
            return match followed(client, deadline, end, report).await? {
                Ok(answer) => Ok(answer),
                Err(last) => Err(request.not_done(timeout, &last.status)),
            };
        }
        let answer = report.checked(outcome)?;
        report.change(&answer.status)?;
        if answer.done {
            return Ok(answer);
        }
        accepted = Some(request.make_retry(&answer));
        if Instant::now() >= deadline {
            report.answer(&answer)?;
            return Err(request.not_done(timeout, &answer.status));
        }
        // A manager that answers at once must not get requests without a pause.
        time::sleep_until(deadline.min(sent + RETRY_DELAY)).await;
    }
}

/// Waits by the status alone for the end of a request that was accepted. The inner error is the last
/// status when the time was over.
async fn followed(
    client: &ManagerClient,
    deadline: Instant,
    end: impl Fn(&Status) -> Option<Outcome>,
    report: &mut Report<'_>,
) -> Result<Result<Answer, Answer>, Failure> {
    let mut poller = StatusPoller::new(client, POLL_TIMEOUT);
    let mut answer = report.checked(poller.next().await)?;
    loop {
        report.change(&answer.status)?;
        let failed = match end(&answer.status) {
            Some(Outcome::Done) => {
                answer.done = true;
                return Ok(Ok(answer));
            }
            Some(Outcome::Failed(refusal)) => Some(refusal),
            None => match time::timeout_at(deadline, poller.next()).await {
                Ok(next) => {
                    answer = report.checked(next)?;
                    continue;
                }
                Err(_) => None,
            },
        };
        report.answer(&answer)?;
        return match failed {
            Some(refusal) => Err(Failure::Failed(refusal.message)),
            None => Ok(Err(answer)),
        };
    }
}

/// Prints each change, without end: the request continues even if the status cannot be read.
async fn print_changes(poller: &mut StatusPoller<'_>, report: &mut Report<'_>) -> Infallible {
    if report.is_json() {
        return future::pending().await;
    }
    while let Ok(answer) = poller.next().await {
        // The output keeps its error.
        let _ = report.change(&answer.status);
    }
    future::pending().await
}

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
    HandOver::parse(&state).map_err(|problem| vec![problem])?;
    let args = [OsString::from("stayput")].into_iter().chain(args);
    let matches =
        super::definition().try_get_matches_from(args).map_err(|error| vec![error.to_string()])?;
    let Some(run) = matches.subcommand_matches("run") else {
        return Err(vec!["the manager was not started by `stayput run`".to_owned()]);
    };
    let settings = settings::read(run, environment, false)?;
    let problems = boot::problems(&settings);
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
