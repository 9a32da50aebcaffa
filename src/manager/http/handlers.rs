//! What each route does.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use serde::de::DeserializeOwned;

use super::app::{App, Door};
use super::body;
use super::query::Query;
use super::respond::Answer;
use super::wait::{self, Verdict};
use crate::metrics::CONTENT_TYPE;
use stayput_api::Accepted;
use stayput_api::Refusal;
use stayput_api::{Code, RequestKind, StartRequest, State, Status, StopRequest};

/// How long a poll without `timeout` lasts.
const DEFAULT_POLL: Duration = Duration::from_secs(30);

pub(super) async fn status(
    app: &Arc<App>,
    door: Door,
    query: Option<&str>,
) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["after", "timeout"])?;
    let limit = query.span("timeout")?.unwrap_or(DEFAULT_POLL);
    let Some(after) = query.text("after") else {
        let status = app.probed().await.unwrap_or_else(|| app.handle.status());
        return Ok(shown(app, StatusCode::OK, &status));
    };
    let newer = |status: &Arc<Status>| (status.cursor.0 != after).then(|| status.clone());
    if let Some(status) = newer(&app.handle.status()) {
        return Ok(shown(app, StatusCode::OK, &status));
    }
    let Some(_place) = app.place_to_wait(door) else {
        return Err(Refusal::new(
            Code::TooManyWaiting,
            "as many requests as may wait for a change wait already: ask again in a second, or \
             read the status without `after`",
        ));
    };
    // Somebody waits, so the probe is asked; its answer arrives as a change of the status. Beside
    // the waiting, because a change must not wait for the probe.
    let look = async {
        app.probed().await;
        std::future::pending().await
    };
    let newer = tokio::select! {
        biased;
        newer = app.follow(limit, newer) => newer,
        never = look => never,
    };
    Ok(newer.map_or_else(Answer::no_content, |status| shown(app, StatusCode::OK, &status)))
}

/// A request that changes something, as it came.
pub(super) struct Sent<'a, B> {
    pub(super) door: Door,
    /// Who sent it.
    pub(super) by: String,
    pub(super) query: Option<&'a str>,
    pub(super) body: B,
}

impl<B> Sent<'_, B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// How long to wait, and what is asked for.
    async fn read<T: DeserializeOwned + Default>(
        self,
        app: &App,
    ) -> Result<(Option<Duration>, T), Refusal> {
        let wait = Query::parse(self.query, &["wait"])?.span("wait")?;
        Ok((wait, body::parse(&body::read(self.body, app.limits.body).await?)?))
    }
}

pub(super) async fn stop<B>(app: &Arc<App>, sent: Sent<'_, B>) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (door, by) = (sent.door, sent.by.clone());
    let (wait, request): (_, StopRequest) = sent.read(app).await?;
    let (handle, caller, number) = (app.handle.clone(), by.clone(), request.sequence);
    let asked = async move { handle.stop(request, caller).await };
    let accepted = mutate(RequestKind::Stop, by, number, asked).await?;
    finish(app, door, accepted, wait, |status| wait::stop(accepted.sequence, status)).await
}

pub(super) async fn start<B>(app: &Arc<App>, sent: Sent<'_, B>) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (door, by) = (sent.door, sent.by.clone());
    let (wait, request): (_, StartRequest) = sent.read(app).await?;
    let (handle, caller, number) = (app.handle.clone(), by.clone(), request.sequence);
    let checksum = request.checksum.clone();
    let asked = async move { handle.start(request, caller).await };
    let accepted = mutate(RequestKind::Start, by, number, asked).await?;
    let judge = |status: &Status| wait::start(accepted.sequence, checksum.as_deref(), status);
    finish(app, door, accepted, wait, judge).await
}

/// Asks the supervisor on a task of its own: the outcome is logged also when the caller has hung
/// up meanwhile.
async fn mutate(
    kind: RequestKind,
    by: String,
    number: Option<u64>,
    asked: impl Future<Output = Result<Accepted, Refusal>> + Send + 'static,
) -> Result<Accepted, Refusal> {
    let task = tokio::spawn(async move {
        let outcome = asked.await;
        let request = kind.as_str();
        match &outcome {
            Ok(Accepted { sequence, done }) => {
                tracing::info!(request, by, sequence, done, "accepted");
            }
            Err(Refusal { code, message: detail }) => {
                let code = code.as_str();
                // Without a number there is none: the manager takes one only when it judges.
                tracing::info!(request, by, sequence = number, code, detail, "refused");
            }
        }
        outcome
    });
    let gone =
        |_| Refusal::new(Code::Unavailable, "the manager is ending: ask again when it is back");
    task.await.map_err(gone)?
}

async fn finish(
    app: &Arc<App>,
    door: Door,
    accepted: Accepted,
    wait: Option<Duration>,
    judge: impl Fn(&Status) -> Option<Verdict>,
) -> Result<Answer, Refusal> {
    let done = |code| Ok(shown(app, code, &app.handle.status()));
    if accepted.done {
        return done(StatusCode::OK);
    }
    let Some(wait) = wait else { return done(StatusCode::ACCEPTED) };
    let judge = |status: &Arc<Status>| judge(status).map(|verdict| (verdict, status.clone()));
    // The request was accepted, so it is not refused for want of a place: its wait is over at once.
    let place = app.place_to_wait(door);
    let wait = if place.is_some() { wait } else { Duration::ZERO };
    match app.follow(wait, judge).await {
        None => done(StatusCode::ACCEPTED),
        Some((Verdict::Done, status)) => Ok(shown(app, StatusCode::OK, &status)),
        Some((Verdict::Failed(refusal), status)) => Ok(Answer::problem(refusal, Some(&status))),
    }
}

pub(super) async fn livez(app: &App) -> Answer {
    Answer::probe(app.is_alive().await)
}

pub(super) async fn readyz(app: &App) -> Answer {
    let status = app.probed().await;
    Answer::probe(
        status.is_some_and(|status| status.state == State::Running && status.ready != Some(false)),
    )
}

pub(super) fn metrics(app: &App) -> Answer {
    let reload_failed = !app.material.borrow().errors.is_empty();
    let text = app.metrics.scrape(&app.handle.status(), reload_failed);
    Answer::text(StatusCode::OK, CONTENT_TYPE, text)
}

fn shown(app: &App, code: StatusCode, status: &Arc<Status>) -> Answer {
    Answer::json(code, app.serialized(status))
}
