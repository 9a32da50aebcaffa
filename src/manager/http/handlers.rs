//! Handlers of the routes.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::{Body, Bytes};

use super::body;
use super::context::{Context, ListenerKind};
use super::query::Query;
use super::respond::Answer;
use super::wait::{self, Outcome};
use crate::metrics::CONTENT_TYPE;
use crate::supervisor::Control;
use stayput_api::Accepted;
use stayput_api::Refusal;
use stayput_api::{Code, Status, StopRequest, UpgradeRequest};

/// How long a poll without `timeout` waits.
const DEFAULT_POLL_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn status(
    context: &Arc<Context>,
    listener: ListenerKind,
    query: Option<&str>,
) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["after", "timeout"])?;
    let limit = query.span("timeout")?.unwrap_or(DEFAULT_POLL_TIMEOUT);
    context.handle.refresh_config();
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
pub(super) struct ControlRequest<'a, B> {
    pub(super) kind: ControlKind,
    pub(super) listener: ListenerKind,
    /// The subject of the caller.
    pub(super) by: String,
    pub(super) query: Option<&'a str>,
    pub(super) body: B,
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
pub(super) async fn control<B>(
    context: &Arc<Context>,
    sent: ControlRequest<'_, B>,
) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let ControlRequest { kind, listener, by, query, body } = sent;
    let wait = Query::parse(query, kind.parameters())?.wait(context.limits.max_wait)?;
    let request = kind.parse(&body::read(body, context.limits.body).await?)?;
    let accepted = submit(context, request.clone(), by).await?;
    let sequence = accepted.sequence;
    let end: &(dyn Fn(&Status) -> Option<Outcome> + Sync) = match &request {
        Control::Stop(_) => &|status| wait::stop(sequence, status),
        Control::Start(start) => &|status| wait::start(sequence, start, status),
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
    let status = context.probed_status().await;
    Answer::probe(status.is_some_and(|status| context.last_ready.is_ready(&status)))
}

pub(super) fn metrics(context: &Context) -> Answer {
    context.handle.refresh_config();
    let keys = context.keys.in_force();
    let expiry = keys.validity.map(|validity| validity.not_after);
    let text = context.metrics.scrape(&context.handle.status(), !keys.is_current, expiry);
    Answer::text(StatusCode::OK, CONTENT_TYPE, text)
}

fn status_answer(context: &Context, code: StatusCode, status: &Arc<Status>) -> Answer {
    Answer::json(code, context.serialized(status)).with_times_ahead(context.handle.times_ahead())
}
