//! `status`, `status --watch` and `wait`: commands that read the status by long polls and change nothing.

use std::io::{self, Write};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use tokio::time::{self, Instant};

use super::Failure;
use super::render::{self, ChangePrinter};
use stayput_api::checksum::Checksum;
use stayput_api::{Code, Cursor, Desired, Span, State, Status};
use stayput_http::manager_client::{Answer, ClientError, ManagerClient};

/// The state that `wait` waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// The engine has no process, and none will be started.
    Stopped,
    /// The engine has been ready in this run.
    Running,
    /// The engine is ready, as `/readyz` says.
    Ready,
    /// The mounted config has this checksum.
    Checksum(Checksum),
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("checksum=")) {
            ("stopped", _) => Ok(Self::Stopped),
            ("running", _) => Ok(Self::Running),
            ("ready", _) => Ok(Self::Ready),
            (_, Some(checksum)) => Ok(Self::Checksum(Checksum::parse(checksum)?)),
            _ => Err("write stopped, running, ready or checksum=C".to_owned()),
        }
    }
}

impl Goal {
    async fn is_met(&self, status: &Status, client: &ManagerClient) -> bool {
        match self {
            Self::Stopped => status.state == State::Stopped && status.desired == Desired::Stopped,
            Self::Running => status.state == State::Running,
            // The next status says why there is no answer.
            Self::Ready => client.is_ready().await.unwrap_or(false),
            Self::Checksum(wanted) => status
                .config
                .as_ref()
                .is_some_and(|config| config.checksum.as_deref() == Some(wanted.as_str())),
        }
    }

    /// Reason why the goal cannot be reached without a further request, if there is one.
    fn obstacle(&self, status: &Status) -> Option<&'static str> {
        match self {
            Self::Checksum(_) if status.config.is_none() => {
                return Some("its manager has no --config, and knows no checksum");
            }
            Self::Stopped | Self::Checksum(_) => return None,
            Self::Running | Self::Ready => {}
        }
        match (status.desired, status.state) {
            (Desired::Stopped, _) if status.resume.is_some() => None,
            (Desired::Stopped, _) => Some("a stop was requested, and no start since"),
            (Desired::Running, State::Failed) => Some("it is held until a start is requested"),
            (Desired::Running, State::Stuck) => Some("a process of it cannot be ended"),
            (
                Desired::Running,
                State::Stopped
                | State::Starting
                | State::Running
                | State::Stopping
                | State::Killing
                | State::Backoff,
            ) => None,
        }
    }

    /// How long one poll waits. A change of readiness is noticed only when the status is requested,
    /// at most once a second; every other change ends the poll.
    const fn poll_timeout(&self) -> Duration {
        match self {
            Self::Ready => Duration::from_secs(1),
            Self::Stopped | Self::Running | Self::Checksum(_) => POLL_TIMEOUT,
        }
    }
}

/// How late an answer may be, after the time that the manager was asked to wait. It may ask the engine first, for up to
/// a second each time.
pub(super) const ANSWER_DELAY: Duration = Duration::from_secs(3);

/// Prints the status.
pub(super) async fn status(
    client: &ManagerClient,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut report = Report::new(out, json);
    let answer = report.checked(client.status().await)?;
    report.answer(&answer)?;
    if json {
        return Ok(());
    }
    Ok(write!(out, "{}", render::status(&answer.status, SystemTime::now()))?)
}

/// Prints a line for each change, until it is interrupted.
pub(super) async fn watch(
    client: &ManagerClient,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut poller = StatusPoller::new(client, POLL_TIMEOUT);
    let mut report = Report::new(out, json);
    let mut cursor = None;
    loop {
        let answer = report.checked(poller.next().await)?;
        report.change(&answer.status)?;
        if cursor.as_ref() != Some(&answer.status.cursor) {
            report.answer(&answer)?;
        }
        cursor = Some(answer.status.cursor);
    }
}

/// Waits until `goal` is met.
pub(super) async fn wait(
    client: &ManagerClient,
    goal: &Goal,
    timeout: Span,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut poller = StatusPoller::new(client, goal.poll_timeout());
    let mut report = Report::new(out, json);
    let deadline = Instant::now() + timeout.to_duration();
    let length = humantime::format_duration(timeout.to_duration());
    // The first status is needed in any case, so it may take a moment even if the timeout is zero.
    let mut answer = match time::timeout_at(deadline + ANSWER_DELAY, poller.next()).await {
        Ok(outcome) => report.checked(outcome)?,
        Err(_) => {
            return Err(Failure::TimedOut(format!("the manager did not answer within {length}")));
        }
    };
    loop {
        report.change(&answer.status)?;
        let met = goal.is_met(&answer.status, client);
        if time::timeout_at(deadline + ANSWER_DELAY, met).await.unwrap_or(false) {
            return report.answer(&answer);
        }
        if let Some(obstacle) = goal.obstacle(&answer.status) {
            report.answer(&answer)?;
            return Err(Failure::Failed(format!(
                "not waiting: the engine is {}; {obstacle}",
                render::summary(&answer.status)
            )));
        }
        answer = match time::timeout_at(deadline, poller.next()).await {
            Ok(outcome) => report.checked(outcome)?,
            Err(_) => {
                report.answer(&answer)?;
                return Err(Failure::TimedOut(format!(
                    "timed out after {length}: the engine is {}",
                    render::summary(&answer.status)
                )));
            }
        };
    }
}

/// Prints for a command: with `--json` the API's answers as they are, otherwise each change.
pub(super) struct Report<'a> {
    out: &'a mut dyn Write,
    json: bool,
    changes: ChangePrinter,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut impl Write, json: bool) -> Self {
        Self { out, json, changes: ChangePrinter::default() }
    }

    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a line if the status has changed; nothing with `--json`.
    pub(super) fn change(&mut self, status: &Status) -> io::Result<()> {
        if self.json { Ok(()) } else { self.changes.print(status, &mut self.out) }
    }

    /// Prints the API's answer with `--json`, and nothing without.
    pub(super) fn answer(&mut self, answer: &Answer) -> Result<(), Failure> {
        if self.json { self.body(&answer.body) } else { Ok(()) }
    }

    /// Returns the good result. With `--json`, a refusal is printed as it is before the command fails.
    pub(super) fn checked<T>(&mut self, outcome: Result<T, ClientError>) -> Result<T, Failure> {
        if let (true, Err(ClientError::Refused(refused))) = (self.json, &outcome) {
            self.body(&refused.body)?;
        }
        Ok(outcome?)
    }

    fn body(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.out.write_all(body)?;
        if !body.ends_with(b"\n") {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out.flush()?)
    }
}

/// How long one poll waits for a change.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay from a failed request to the next one: the manager's container may be restarting, or the
/// manager answers without waiting.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Reads one status after the other.
#[derive(Debug)]
pub(super) struct StatusPoller<'a> {
    client: &'a ManagerClient,
    poll_timeout: Duration,
    cursor: Option<Cursor>,
    reached: bool,
}

impl<'a> StatusPoller<'a> {
    /// Begins with the current status; `poll_timeout` is how long each poll waits.
    pub(super) const fn new(client: &'a ManagerClient, poll_timeout: Duration) -> Self {
        Self { client, poll_timeout, cursor: None, reached: false }
    }

    /// The next status; after a poll without a change, the current one again, because a request for
    /// it makes the manager call its readiness probe.
    ///
    /// Waits without end for a manager that was reached before: the caller needs a timeout.
    pub(super) async fn next(&mut self) -> Result<Answer, ClientError> {
        loop {
            match self.poll().await {
                Ok(answer) => {
                    self.reached = true;
                    self.cursor = Some(answer.status.cursor.clone());
                    return Ok(answer);
                }
                Err(ClientError::NotReachable(_) | ClientError::Unanswered(_)) if self.reached => {
                    self.cursor = None;
                    time::sleep(RETRY_DELAY).await;
                }
                // Too many clients poll it: read the status from time to time instead.
                Err(ClientError::Refused(refused))
                    if refused.problem.code == Code::TooManyWaiting =>
                {
                    self.cursor = None;
                    time::sleep(RETRY_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn poll(&self) -> Result<Answer, ClientError> {
        if let Some(cursor) = &self.cursor
            && let Some(answer) = self.client.status_after(cursor, self.poll_timeout).await?
        {
            return Ok(answer);
        }
        self.client.status().await
    }
}
