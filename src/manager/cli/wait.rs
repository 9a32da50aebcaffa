//! `status`, `status --watch` and `wait`: look, and change nothing.

use std::io::Write;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use tokio::time::{self, Instant};

use super::failure::Failure;
use super::follow::{Follower, POLL};
use super::render::{self, Changes};
use stayput_api::{Desired, Span, State, Status};
use stayput_net::manager_client::{Answer, ClientError, ManagerClient};

/// What `wait` waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// No process of the engine, and it stays so.
    Stopped,
    /// It has been ready in this run.
    Running,
    /// It is ready now.
    Ready,
    /// The mounted config has this checksum.
    Checksum(String),
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("checksum=")) {
            ("stopped", _) => Ok(Self::Stopped),
            ("running", _) => Ok(Self::Running),
            ("ready", _) => Ok(Self::Ready),
            (_, Some(checksum)) if !checksum.is_empty() => Ok(Self::Checksum(checksum.to_owned())),
            _ => Err("write stopped, running, ready or checksum=C".into()),
        }
    }
}

impl Goal {
    fn is_met(&self, status: &Status) -> bool {
        match self {
            Self::Stopped => status.state == State::Stopped && status.desired == Desired::Stopped,
            Self::Running => status.state == State::Running,
            // Without a probe nobody can say more than that it runs.
            Self::Ready => status.state == State::Running && status.ready != Some(false),
            Self::Checksum(wanted) => status
                .config
                .as_ref()
                .is_some_and(|config| config.checksum.as_ref() == Some(wanted)),
        }
    }

    /// Why it will not come to be by itself, if so.
    fn obstacle(&self, status: &Status) -> Option<&'static str> {
        match self {
            Self::Stopped | Self::Checksum(_) => return None,
            Self::Running | Self::Ready => {}
        }
        match (status.desired, status.state) {
            (Desired::Stopped, _) => Some("it was asked to stop, and nobody asked for a start"),
            (Desired::Running, State::Failed) => Some("it is held until a start is asked for"),
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

    /// How often to look. Readiness is asked for by those who look, at most once a second; all
    /// else is told by a change.
    const fn poll(&self) -> Duration {
        match self {
            Self::Ready => Duration::from_secs(1),
            Self::Stopped | Self::Running | Self::Checksum(_) => POLL,
        }
    }
}

/// How long an answer that is due may be under way.
pub(super) const ANSWER: Duration = Duration::from_secs(1);

/// Prints the status.
pub(super) async fn status(
    client: &ManagerClient,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let answer = told(client.status().await, json, out)?;
    if json {
        return raw(&answer, out);
    }
    Ok(write!(out, "{}", render::status(&answer.status, SystemTime::now()))?)
}

/// Prints a line for each change, until it is interrupted.
pub(super) async fn watch(
    client: &ManagerClient,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut follower = Follower::new(client, POLL);
    let mut changes = Changes::default();
    let mut cursor = None;
    loop {
        let answer = told(follower.next().await, json, out)?;
        if !json {
            changes.print(&answer.status, out)?;
        } else if cursor.as_ref() != Some(&answer.status.cursor) {
            raw(&answer, out)?;
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
    let mut follower = Follower::new(client, goal.poll());
    let mut changes = Changes::default();
    let deadline = Instant::now() + timeout.to_duration();
    let length = humantime::format_duration(timeout.to_duration());
    // The first look tells what there is to wait for, so it may take a moment however short the
    // time is.
    let mut answer = match time::timeout_at(deadline + ANSWER, follower.next()).await {
        Ok(outcome) => told(outcome, json, out)?,
        Err(_) => {
            return Err(Failure::TimedOut(format!("the manager did not answer within {length}")));
        }
    };
    loop {
        if !json {
            changes.print(&answer.status, out)?;
        }
        if goal.is_met(&answer.status) {
            return if json { raw(&answer, out) } else { Ok(()) };
        }
        if let Some(obstacle) = goal.obstacle(&answer.status) {
            if json {
                raw(&answer, out)?;
            }
            return Err(Failure::Failed(format!(
                "waiting is of no use, for the engine is {}; {obstacle}",
                render::headline(&answer.status)
            )));
        }
        answer = match time::timeout_at(deadline, follower.next()).await {
            Ok(outcome) => told(outcome, json, out)?,
            Err(_) => {
                if json {
                    raw(&answer, out)?;
                }
                return Err(Failure::TimedOut(format!(
                    "not so after {length}: the engine is {}",
                    render::headline(&answer.status)
                )));
            }
        };
    }
}

/// Prints the API's answer as it came.
pub(super) fn raw(answer: &Answer, out: &mut impl Write) -> Result<(), Failure> {
    print_json(&answer.body, out)
}

/// Passes an answer on; with `json`, a refusal is printed as it came before it fails the command.
pub(super) fn told<T>(
    outcome: Result<T, ClientError>,
    json: bool,
    out: &mut impl Write,
) -> Result<T, Failure> {
    if let (true, Err(ClientError::Refused(refused))) = (json, &outcome) {
        print_json(&refused.body, out)?;
    }
    Ok(outcome?)
}

fn print_json(body: &[u8], out: &mut impl Write) -> Result<(), Failure> {
    out.write_all(body)?;
    if !body.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
