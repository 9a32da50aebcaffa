//! `stop`, `start` and `restart`: ask, follow until it is done, say what came of it.
//!
//! Whether it is done is the manager's judgement: the request itself is held back until then. The
//! status is followed beside it only to show what happens.

use std::future;
use std::io::Write;
use std::time::Duration;

use tokio::time::{self, Instant};

use super::args::{PatienceArgs, RestartArgs, WaitArgs};
use super::failure::Failure;
use super::follow::{Follower, PAUSE, POLL};
use super::render::{self, Changes};
use super::wait::{ANSWER, raw, told};
use stayput_api::{ConfigChoice, Span, StartRequest, Status, StopRequest};
use stayput_net::manager_client::{Answer, ClientError, ManagerClient};

/// How long the manager holds one request back. After that it is asked again, under the same
/// sequence, which it takes for the retry that it is.
const HOLD: Duration = Duration::from_secs(60);

/// A request that changes something.
#[derive(Debug)]
pub(super) enum Act {
    Stop(StopRequest),
    Start(StartRequest),
}

impl Act {
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

    /// Makes further requests retries of the one that was accepted.
    fn remember(&mut self, accepted: &Status) {
        let sequence = match self {
            Self::Stop(request) => &mut request.sequence,
            Self::Start(request) => &mut request.sequence,
        };
        sequence.get_or_insert(accepted.sequence);
    }
}

/// Asks for a stop or a start.
pub(super) async fn act(
    client: &ManagerClient,
    act: Act,
    args: &WaitArgs,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let PatienceArgs { timeout, json } = args.patience;
    let answer = if args.no_wait {
        let answer = told(act.send(client, None).await, json, out)?;
        if !json {
            Changes::default().print(&answer.status, out)?;
        }
        answer
    } else {
        until_done(client, act, timeout, json, &mut Changes::default(), out).await?
    };
    if json { raw(&answer, out) } else { Ok(()) }
}

/// Stops the engine and starts it again.
pub(super) async fn restart(
    client: &ManagerClient,
    args: RestartArgs,
    patience: &PatienceArgs,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let PatienceArgs { timeout, json } = *patience;
    let (stop, mut start) = args.into_requests();
    if let Some(status) = current(client).await?
        && let Some(obstacle) = obstacle(&start, &status)
    {
        return Err(Failure::Failed(format!("nothing was stopped, for {obstacle}")));
    }
    let mut changes = Changes::default();
    let stopped = until_done(client, Act::Stop(stop), timeout, json, &mut changes, out).await?;
    // The very next number: if anybody asks for something in between, our start is stale and
    // refused, rather than starting an engine that somebody else wants stopped.
    start.sequence = Some(stopped.status.sequence + 1);
    let again = again(&start);
    match until_done(client, Act::Start(start), timeout, json, &mut changes, out).await {
        Ok(answer) if json => raw(&answer, out),
        Ok(_) => Ok(()),
        Err(failure) => {
            if let Failure::Client(ClientError::Refused(_)) = failure {
                let advice = format!(
                    "stayput: the engine was stopped and is not started again; when the reason \
                     below is dealt with, run: {again}"
                );
                // On stderr with the reason, so that --json stays JSON.
                let _ = writeln!(std::io::stderr(), "{advice}");
            }
            Err(failure)
        }
    }
}

/// The status, if we may read it: a token may allow control alone.
async fn current(client: &ManagerClient) -> Result<Option<Status>, Failure> {
    match client.status().await {
        Ok(answer) => Ok(Some(answer.status)),
        Err(ClientError::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Why the start after the stop is known to be refused: to be told before the engine is stopped.
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

fn again(start: &StartRequest) -> String {
    match (&start.checksum, start.config) {
        (Some(checksum), _) => format!("stayput start --checksum {checksum}"),
        (None, ConfigChoice::LastGood) => "stayput start --last-good".into(),
        (None, ConfigChoice::Mounted) => "stayput start".into(),
    }
}

async fn until_done(
    client: &ManagerClient,
    mut act: Act,
    timeout: Span,
    json: bool,
    changes: &mut Changes,
    out: &mut impl Write,
) -> Result<Answer, Failure> {
    let deadline = Instant::now() + timeout.to_duration();
    let mut follower = Follower::new(client, POLL);
    loop {
        let asked = Instant::now();
        let left = deadline.saturating_duration_since(asked);
        let outcome = {
            let show = show(&mut follower, changes, json, out);
            tokio::select! {
                biased;
                outcome = act.send(client, Some(left.min(HOLD))) => outcome,
                failure = show => return Err(failure),
                // The manager answers when its wait is over; one that does not must not hold us.
                () = time::sleep_until(deadline + ANSWER) => {
                    return Err(Failure::TimedOut(format!(
                        "the manager did not answer within {}, and whether it acted on the {} is \
                         not known: look at its status",
                        humantime::format_duration(timeout.to_duration()),
                        act.name(),
                    )));
                }
            }
        };
        let answer = told(outcome, json, out)?;
        if !json {
            changes.print(&answer.status, out)?;
        }
        if answer.done {
            return Ok(answer);
        }
        act.remember(&answer.status);
        if Instant::now() >= deadline {
            if json {
                raw(&answer, out)?;
            }
            return Err(Failure::TimedOut(format!(
                "the {} is not done after {}, and goes on: the engine is {}. \
                 Wait on with: stayput wait --for {}",
                act.name(),
                humantime::format_duration(timeout.to_duration()),
                render::headline(&answer.status),
                act.goal(),
            )));
        }
        // A manager that holds nothing back must not be asked without a pause.
        time::sleep_until(deadline.min(asked + PAUSE)).await;
    }
}

/// Shows each change. Ends only if our own output fails: a status that cannot be followed is no
/// reason to give up what it is the status of.
async fn show(
    follower: &mut Follower<'_>,
    changes: &mut Changes,
    json: bool,
    out: &mut impl Write,
) -> Failure {
    if json {
        return future::pending().await;
    }
    loop {
        match follower.next().await {
            Ok(answer) => {
                if let Err(error) = changes.print(&answer.status, out) {
                    return Failure::Output(error);
                }
            }
            Err(_) => return future::pending().await,
        }
    }
}
