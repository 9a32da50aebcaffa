//! Flushes before a stop: this makes recovery short. A failed flush never blocks a restart.

use std::time::Duration;

use serde::Deserialize;

use super::answer::Answer;
use super::transport::Call;
use super::{Engine, EngineClient, EngineError};

/// The result of a flush.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Flush {
    /// The engine answered.
    Done {
        /// True for a synced flush, after which replicas need not compare files.
        synced: bool,
        /// Number of shard copies that were to be flushed.
        total: u64,
        /// Number of shard copies that were flushed.
        successful: u64,
        /// Number of shard copies that were not flushed; with a synced flush, mostly because of writes under
        /// way.
        failed: u64,
    },
    /// Reason for a missing or late answer. The engine may still be flushing.
    NotKnown(String),
}

impl EngineClient {
    /// Flushes every index that is not hidden, also those behind data streams, but not those of the engine
    /// itself. A synced flush where the engine has one. Waits up to `timeout`.
    pub async fn flush(&self, engine: &Engine, timeout: Duration) -> Flush {
        let synced = engine.has_synced_flush();
        let answer = self.transport.send(&call(synced).within(timeout)).await;
        match answer.and_then(|answer| parse(&answer, synced)) {
            Ok(flush) => flush,
            Err(error) => Flush::NotKnown(error.to_string()),
        }
    }
}

pub(super) fn call(synced: bool) -> Call {
    Call::post(if synced { "/_flush/synced" } else { "/_flush" })
}

/// Reads the result of a flush. With 409 some copies were not flushed; the body is the same.
pub(super) fn parse(answer: &Answer, synced: bool) -> Result<Flush, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "_shards")]
        shards: Shards,
    }
    #[derive(Deserialize)]
    struct Shards {
        total: u64,
        successful: u64,
        failed: u64,
    }
    let body: Body = if synced && answer.status == 409 { answer.body()? } else { answer.read()? };
    let Shards { total, successful, failed } = body.shards;
    Ok(Flush::Done { synced, total, successful, failed })
}
