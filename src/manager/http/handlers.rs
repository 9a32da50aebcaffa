//! Handlers of the routes; readiness; waiting for the end of a request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::routes::{Answer, Query};
use super::{Context, ListenerKind, body};
use crate::metrics::CONTENT_TYPE;
use crate::supervisor::Control;
use stayput_api::{
    Accepted, Code, ConfigChoice, Desired, Refusal, StartRequest, State, Status, StopRequest,
    UpgradeRequest,
};

/// How long a poll without `timeout` waits.
const DEFAULT_POLL_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn status(
    context: &Arc<Context>,
    listener: ListenerKind,
    query: Option<&str>,
) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["after", "timeout"])?;
    let limit = query.span("timeout")?.unwrap_or(DEFAULT_POLL_TIMEOUT);
    context.handle.refresh_files();
    let Some(after) = query.text("after") else {
        let status = context.probed_status().await.unwrap_or_else(|| context.handle.status());
        return Ok(status_answer(context, StatusCode::OK, &status));
    };
    let newer = |status: &Arc<Status>| (status.cursor.0 != after).then(|| status.clone());
    if let Some(status) = newer(&context.handle.status()) {
        return Ok(status_answer(context, StatusCode::OK, &status));
    }
    let Some(_permit) = context.permit_to_wait(listener) else {
        return Err(Refusal::new(
            Code::TooManyWaiting,
            "too many requests wait for a change: try again in a second, or read the status without \
             `after`",
        ));
    };
    // A client waits, so the probe is called; its answer is a change of the status. Both run at the
    // same time, because other changes must not wait for the probe.
    let probe = async {
        context.probed_status().await;
        std::future::pending().await
    };
    let newer = tokio::select! {
        biased;
        newer = context.wait_for_status(limit, newer) => newer,
        never = probe => never,
    };
    Ok(newer
        .map_or_else(Answer::no_content, |status| status_answer(context, StatusCode::OK, &status)))
}

/// A request that changes something, before its body is read.
pub(super) struct ControlRequest<'a> {
    pub(super) kind: ControlKind,
    pub(super) listener: ListenerKind,
    /// The subject of the caller.
    pub(super) by: String,
    pub(super) query: Option<&'a str>,
    pub(super) body: Incoming,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlKind {
    Stop,
    Start,
    Drain,
    Upgrade,
}

impl ControlKind {
    /// The query parameters: only what takes time can be waited for.
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Stop | Self::Start => &["wait"],
            Self::Drain | Self::Upgrade => &[],
        }
    }

    /// The request that is in the body.
    fn parse(self, body: &[u8]) -> Result<Control, Refusal> {
        Ok(match self {
            Self::Stop => {
                let request: StopRequest = body::parse(body)?;
                request.check()?;
                Control::Stop(request)
            }
            Self::Start => Control::Start(body::parse(body)?),
            Self::Drain => Control::Drain(body::parse(body)?),
            Self::Upgrade => {
                let UpgradeRequest {} = body::parse(body)?;
                Control::Upgrade
            }
        })
    }
}

/// Carries out a request that changes something.
pub(super) async fn control(
    context: &Arc<Context>,
    sent: ControlRequest<'_>,
) -> Result<Answer, Refusal> {
    let ControlRequest { kind, listener, by, query, body } = sent;
    let wait = Query::parse(query, kind.parameters())?.wait(context.limits.max_wait)?;
    let request = kind.parse(&body::read(body, context.limits.body).await?)?;
    let accepted = submit(context, request.clone(), by).await?;
    let sequence = accepted.sequence;
    let end: &(dyn Fn(&Status) -> Option<Outcome> + Sync) = match &request {
        Control::Stop(_) => &|status| stop_outcome(sequence, status),
        Control::Start(request) => &|status| start_outcome(sequence, request, status),
        Control::Drain(_) | Control::Upgrade => &|_| None,
    };
    let answer = answer(context, listener, accepted, wait, end).await?;
    Ok(match request {
        Control::Stop(_) | Control::Start(_) => answer.of_request(sequence),
        Control::Drain(_) | Control::Upgrade => answer,
    })
}

/// Sends the request to the supervisor on a task of its own, so that the result is logged even if the
/// caller has closed the connection.
async fn submit(context: &Context, request: Control, by: String) -> Result<Accepted, Refusal> {
    let (handle, name, number) = (context.handle.clone(), request.name(), request.sequence());
    let task = tokio::spawn(async move {
        let outcome = handle.control(request, by.clone()).await;
        match &outcome {
            Ok(Accepted { sequence, done }) => {
                tracing::info!(request = name, by, sequence, done, "accepted");
            }
            Err(Refusal { code, message }) => {
                let code = code.as_str();
                // A request without a sequence gets one only when it is accepted.
                tracing::info!(
                    request = name,
                    by,
                    sequence = number,
                    code,
                    reason = message,
                    "refused"
                );
            }
        }
        outcome
    });
    let gone = |_| {
        Refusal::new(Code::Unavailable, "the manager is shutting down: try again when it is back")
    };
    task.await.map_err(gone)?
}

/// Answers an accepted request, after waiting for its end if that was requested.
async fn answer(
    context: &Arc<Context>,
    listener: ListenerKind,
    accepted: Accepted,
    wait: Option<Duration>,
    outcome: &(dyn Fn(&Status) -> Option<Outcome> + Sync),
) -> Result<Answer, Refusal> {
    let done = |code| Ok(status_answer(context, code, &context.handle.status()));
    if accepted.done {
        return done(StatusCode::OK);
    }
    let Some(wait) = wait else { return done(StatusCode::ACCEPTED) };
    let end = |status: &Arc<Status>| outcome(status).map(|outcome| (outcome, status.clone()));
    // An accepted request is not refused because too many requests wait: it is answered at once.
    let permit = context.permit_to_wait(listener);
    let wait = if permit.is_some() { wait } else { Duration::ZERO };
    match context.wait_for_status(wait, end).await {
        None if permit.is_none() => done(StatusCode::ACCEPTED)
            .map(|answer| answer.cut_short("too many requests wait already")),
        None if context.is_shutting_down() => {
            done(StatusCode::ACCEPTED).map(|answer| answer.cut_short("the manager is ending"))
        }
        None => done(StatusCode::ACCEPTED),
        Some((Outcome::Done, status)) => Ok(status_answer(context, StatusCode::OK, &status)),
        Some((Outcome::Failed(refusal), status)) => Ok(Answer::problem(refusal, Some(&status))),
    }
}

pub(super) async fn livez(context: &Context) -> Answer {
    Answer::probe(context.is_alive().await)
}

pub(super) async fn readyz(context: &Context) -> Answer {
    let status = match context.probed_status().await {
        Some(status) => status,
        // A loop that is late, as on a machine that stands still for a moment, is like a probe that fails.
        None => Arc::new(Status { ready: Some(false), ..(*context.handle.status()).clone() }),
    };
    Answer::probe(context.last_ready.is_ready(&status))
}

pub(super) fn metrics(context: &Context) -> Answer {
    context.handle.refresh_files();
    let keys = context.keys.in_force();
    let expiry = keys.validity.map(|validity| validity.not_after);
    let text = context.metrics.scrape(&context.handle.status(), !keys.is_current, expiry);
    Answer::text(StatusCode::OK, CONTENT_TYPE, text)
}

fn status_answer(context: &Context, code: StatusCode, status: &Arc<Status>) -> Answer {
    Answer::json(code, context.serialized(status)).with_times_ahead(context.handle.times_ahead())
}

// Answer of `/readyz` while the readiness probe fails for a moment. Elasticsearch closes its
// readiness port on all nodes while they elect a master: without this, one election would take
// every node out of the Service.

/// How long `/readyz` stays 200 after the readiness probe has last succeeded.
const GRACE: Duration = Duration::from_secs(5);
/// The reason of a status while the engine is unready on purpose.
const DRAINING: &str = "draining";

/// Time when `/readyz` last saw the engine ready, and id of that run.
#[derive(Debug, Default)]
pub(super) struct LastReady(Mutex<Option<(Instant, String)>>);

impl LastReady {
    /// True if the pod is to get requests. An engine that stops, drains or is another process gets
    /// none at once.
    pub(super) fn is_ready(&self, status: &Status) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let drains = status.reason.as_ref().is_some_and(|reason| reason.code == DRAINING);
        if status.state != State::Running || drains {
            *last = None;
            return false;
        }
        if status.ready != Some(false) {
            *last = status.run.as_ref().map(|run| (Instant::now(), run.id.clone()));
            return true;
        }
        let is_same = |id: &String| status.run.as_ref().is_some_and(|run| run.id == *id);
        last.as_ref().is_some_and(|(at, id)| is_same(id) && at.elapsed() < GRACE)
    }
}

/// How the wait for a request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The request is carried out.
    Done,
    /// The request will not be carried out.
    Failed(Refusal),
}

/// How a status relates to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Relevance {
    /// The status is older than the request.
    Older,
    /// The status is about the request.
    Current,
    /// A later request was accepted.
    Superseded(Outcome),
}

/// How the stop that was accepted under `sequence` ended; `None`: keep waiting.
pub(crate) fn stop_outcome(sequence: u64, status: &Status) -> Option<Outcome> {
    match relevance(sequence, Desired::Stopped, status) {
        Relevance::Older => return None,
        Relevance::Current => {}
        Relevance::Superseded(outcome) => return Some(outcome),
    }
    if status.desired == Desired::Running {
        return Some(Outcome::Failed(Refusal::new(
            Code::Superseded,
            "`resumeAfter` has passed, and the engine was started again",
        )));
    }
    match status.state {
        State::Stopped if status.manager.durable => Some(Outcome::Done),
        State::Stuck => Some(failed(Code::Stuck, status, "a process of the engine survives KILL")),
        State::Stopped
        | State::Starting
        | State::Running
        | State::Stopping
        | State::Killing
        | State::Backoff
        | State::Failed => None,
    }
}

/// How the start that was accepted under `sequence` ended; `None`: keep waiting.
pub(crate) fn start_outcome(
    sequence: u64,
    request: &StartRequest,
    status: &Status,
) -> Option<Outcome> {
    match relevance(sequence, Desired::Running, status) {
        Relevance::Older => return None,
        Relevance::Current => {}
        Relevance::Superseded(outcome) => return Some(outcome),
    }
    match status.state {
        State::Running => {
            let running = status.run.as_ref().and_then(|run| run.checksum.as_deref());
            let config = status.run.as_ref().map(|run| run.config);
            match request.checksum.as_deref() {
                _ if request.config == ConfigChoice::LastGood && config != Some(request.config) => {
                    Some(Outcome::Failed(superseded(sequence, status)))
                }
                Some(wanted) if running != Some(wanted) => Some(Outcome::Failed(Refusal::new(
                    Code::WrongConfig,
                    wrong_config(wanted, running),
                ))),
                Some(_) | None => Some(Outcome::Done),
            }
        }
        State::Failed => {
            Some(failed(Code::StartFailed, status, "the engine ended before it was ready"))
        }
        State::Stuck => Some(failed(Code::Stuck, status, "a process of the engine survives KILL")),
        State::Stopped | State::Starting | State::Stopping | State::Killing | State::Backoff => {
            None
        }
    }
}

fn relevance(sequence: u64, wanted: Desired, status: &Status) -> Relevance {
    let Some(last) = &status.last_request else { return Relevance::Older };
    if last.sequence < sequence {
        return Relevance::Older;
    }
    // The engine is still to be what was asked for: the later request was refused, or somebody else
    // asked for the same. What this one asked for is what decides.
    if last.sequence == sequence || status.desired == wanted {
        return Relevance::Current;
    }
    Relevance::Superseded(Outcome::Failed(superseded(sequence, status)))
}

fn superseded(sequence: u64, status: &Status) -> Refusal {
    Refusal::new(
        Code::Superseded,
        format!(
            "request {sequence} was accepted, and then request {} took its place: read the \
             status before asking again",
            status.sequence
        ),
    )
}

fn failed(code: Code, status: &Status, otherwise: &str) -> Outcome {
    let message = status.reason.as_ref().map_or_else(
        || format!("{otherwise}: see `last_exit` and the engine's log"),
        |why| why.message.clone(),
    );
    Outcome::Failed(Refusal::new(code, message))
}

fn wrong_config(wanted: &str, running: Option<&str>) -> String {
    match running {
        Some(running) => {
            format!("the engine runs with {running}, not with {wanted}: stop it before starting it")
        }
        None => format!(
            "the engine runs, perhaps not with {wanted}: the config changed while \
             the engine read it"
        ),
    }
}

#[cfg(test)]
mod tests;
