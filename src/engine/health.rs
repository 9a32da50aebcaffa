//! The cluster's health, as its elected master sees it.

use serde::Deserialize;

use super::answer::Answer;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{EngineClient, EngineError};
use crate::convert::many;
use stayput_restart::{Color, Health};

/// Answer to `GET /_cluster/health`.
#[derive(Deserialize)]
struct Body {
    /// `green`, `yellow` or `red`; in capitals, too.
    status: String,
    /// True if the request's condition was not met in time, such as that the master has no pending tasks: the
    /// numbers may change.
    timed_out: bool,
    number_of_data_nodes: u64,
    initializing_shards: u64,
    relocating_shards: u64,
    unassigned_shards: u64,
    delayed_unassigned_shards: u64,
    number_of_in_flight_fetch: u64,
}

impl From<Body> for Health {
    fn from(body: Body) -> Self {
        Self {
            color: match body.status.to_ascii_lowercase().as_str() {
                "green" => Color::Green,
                "yellow" => Color::Yellow,
                "red" => Color::Red,
                _ => Color::Unknown,
            },
            timed_out: body.timed_out,
            data_nodes: many(body.number_of_data_nodes),
            initializing: many(body.initializing_shards),
            relocating: many(body.relocating_shards),
            unassigned: many(body.unassigned_shards),
            delayed: many(body.delayed_unassigned_shards),
            in_flight_fetch: many(body.number_of_in_flight_fetch),
        }
    }
}

impl EngineClient {
    /// The cluster's health once its master has no pending tasks, or after a second.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses with 503.
    pub async fn health(&self) -> Result<Health, EngineError> {
        parse(&self.transport.send(&call()).await?)
    }

    /// The cluster's health as it is now, also while its master has pending tasks: they may change it.
    ///
    /// # Errors
    /// See [`Self::health`].
    pub async fn health_at_once(&self) -> Result<Health, EngineError> {
        parse(&self.transport.send(&at_once_call()).await?)
    }

    /// The cluster's health once it is green and its master has no pending tasks, or after a second; then
    /// [`Health::timed_out`] is true.
    ///
    /// # Errors
    /// See [`Self::health`].
    pub async fn health_once_green(&self) -> Result<Health, EngineError> {
        parse(&self.transport.send(&green_call()).await?)
    }

    /// The cluster's health once it has at least this many nodes, or after a second; then
    /// [`Health::timed_out`] is true.
    ///
    /// # Errors
    /// See [`Self::health`].
    pub async fn health_once_nodes(&self, at_least: usize) -> Result<Health, EngineError> {
        let call = nodes_call(at_least);
        parse(&self.transport.send(&call).await?)
    }
}

fn nodes_call(at_least: usize) -> Call {
    Call::get(format!(
        "/_cluster/health?wait_for_nodes=ge({at_least})&timeout=1s&master_timeout={MASTER_TIMEOUT}"
    ))
}

pub(super) fn green_call() -> Call {
    Call::get(format!(
        "/_cluster/health?wait_for_status=green&wait_for_events=languid&timeout=1s\
         &master_timeout={MASTER_TIMEOUT}"
    ))
}

pub(super) fn at_once_call() -> Call {
    Call::get(format!("/_cluster/health?master_timeout={MASTER_TIMEOUT}"))
}

/// The request for [`EngineClient::health`]. With a timeout of 0 s, engines sometimes answer 408 although
/// they are idle.
pub(super) fn call() -> Call {
    Call::get(format!(
        "/_cluster/health?wait_for_events=languid&timeout=1s&master_timeout={MASTER_TIMEOUT}"
    ))
}

/// Reads the health. With 408 the wait was too short; the body is the same.
pub(super) fn parse(answer: &Answer) -> Result<Health, EngineError> {
    let body: Body = if answer.status == 408 { answer.body()? } else { answer.read()? };
    Ok(body.into())
}
