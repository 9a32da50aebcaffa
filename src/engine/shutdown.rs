//! Node-shutdown records, of Elasticsearch only: with one the cluster expects the node back.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::answer::Answer;
use super::limited;
use super::transport::Call;
use super::{EngineClient, EngineError};

/// Shutdown record of one node. The engine never removes one by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Record {
    /// Id of the node, which need not be in the cluster.
    pub node_id: String,
    /// Announced future of the node.
    #[serde(rename = "type")]
    pub kind: RecordKind,
    /// Reason that the client gave which made the record.
    #[serde(default)]
    pub reason: String,
    /// Status of the engine's preparation.
    pub status: RecordStatus,
    /// Status of the shards; `None` on engines that do not report it.
    #[serde(default)]
    pub shard_migration: Option<ShardMigration>,
    /// Status of the tasks that move to another node, such as those of machine learning.
    #[serde(default)]
    pub persistent_tasks: Option<Part>,
    /// Status of the engine's plugins.
    #[serde(default)]
    pub plugins: Option<Part>,
}

/// Progress of one part of the preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Part {
    pub status: RecordStatus,
}

impl Record {
    /// The parts of the preparation that are not complete, by the engine's names.
    pub fn preparing(&self) -> impl Iterator<Item = &'static str> {
        let part = |part: Option<Part>| part.map(|part| part.status);
        let parts = [
            ("shard_migration", self.shard_migration.as_ref().map(|shards| shards.status)),
            ("persistent_tasks", part(self.persistent_tasks)),
            ("plugins", part(self.plugins)),
        ];
        let is_open = |status: &Option<RecordStatus>| {
            status.is_some_and(|status| status != RecordStatus::Complete)
        };
        parts.into_iter().filter(move |(_, status)| is_open(status)).map(|(name, _)| name)
    }
}

/// Progress of moving the shards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct ShardMigration {
    pub status: RecordStatus,
    /// The explanation that the engine gives.
    #[serde(default)]
    pub explanation: Option<String>,
}

/// Announced future of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RecordKind {
    /// The node will be back with its data.
    #[serde(alias = "restart")]
    Restart,
    /// The node leaves for good.
    #[serde(alias = "remove")]
    Remove,
    /// Another node takes its place.
    #[serde(alias = "replace")]
    Replace,
    /// The node was sent TERM; written by Elastic's own orchestration.
    #[serde(alias = "sigterm")]
    Sigterm,
    /// A value that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The status of the preparation for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RecordStatus {
    /// The preparation has not begun.
    NotStarted,
    /// The preparation is under way.
    InProgress,
    /// The preparation cannot continue.
    Stalled,
    /// The node may be stopped.
    Complete,
    /// A value that this version does not know.
    #[serde(other)]
    Unknown,
}

impl EngineClient {
    /// Reads all records. Only for engines that support them ([`super::Engine::has_node_shutdown`]).
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn shutdown_records(&self) -> Result<Vec<Record>, EngineError> {
        parse_list(&self.transport.send(&list_call()).await?)
    }

    /// Writes a record that the node will restart, for `reason`: its shards are not moved elsewhere for
    /// `allocation_delay` after it has gone. Replaces the node's record, if there is one. The engine does not
    /// check that there is such a node.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn put_restart_record(
        &self,
        node_id: &str,
        reason: &str,
        allocation_delay: Duration,
    ) -> Result<(), EngineError> {
        let call = put_call(node_id, reason, allocation_delay)?;
        self.transport.send(&call).await?.acknowledged()
    }

    /// Deletes the node's record. A record that does not exist is no error.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn delete_record(&self, node_id: &str) -> Result<(), EngineError> {
        parse_deleted(&self.transport.send(&delete_call(node_id)?).await?)
    }
}

/// The request that asks which methods the route of a record supports. Unlike reading the records, this also
/// works without a master.
pub(super) fn probe() -> Call {
    Call::options("/_nodes/AAAAAAAAAAAAAAAAAAAAAA/shutdown")
}

/// True if the answer to [`probe`] shows support for records. An engine without them reads the path as one
/// for metrics of the node, which allows GET only. For the same reason its `GET /_nodes/shutdown` is a 200
/// with no nodes.
pub(super) fn is_known(answer: &Answer) -> Result<bool, EngineError> {
    match answer.status {
        200 => Ok(answer.allow.as_deref().is_some_and(|methods| methods.contains("PUT"))),
        _ if answer.is_unknown_route() => Ok(false),
        _ => Err(answer.refusal()),
    }
}

/// The request for all records. Most versions refuse `master_timeout` here.
pub(super) fn list_call() -> Call {
    Call::get("/_nodes/shutdown").of_nodes()
}

pub(super) fn put_call(
    node_id: &str,
    reason: &str,
    allocation_delay: Duration,
) -> Result<Call, EngineError> {
    let delay = format!("{}s", allocation_delay.as_secs());
    let body = json!({ "type": "restart", "reason": reason, "allocation_delay": delay });
    Ok(Call::put(record_path(node_id)?, body))
}

pub(super) fn delete_call(node_id: &str) -> Result<Call, EngineError> {
    Ok(Call::delete(record_path(node_id)?))
}

/// Path of a node's record. Engines make ids of 22 characters of URL-safe base64; anything shorter may be a
/// name such as `_local` or a pattern, which would reach other nodes.
pub fn record_path(node_id: &str) -> Result<String, EngineError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if node_id.len() < 16 || !node_id.chars().all(fits) {
        return Err(EngineError::Unusable(format!("{node_id:?} is not the id of a node").into()));
    }
    Ok(format!("/_nodes/{node_id}/shutdown"))
}

/// Checks the answer to a deletion. 404: there was no record.
pub(super) fn parse_deleted(answer: &Answer) -> Result<(), EngineError> {
    if answer.status == 404 { Ok(()) } else { answer.acknowledged() }
}

pub(super) fn parse_list(answer: &Answer) -> Result<Vec<Record>, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(deserialize_with = "limited::of_nodes")]
        nodes: Vec<Record>,
    }
    let mut records = answer.read::<Body>()?.nodes;
    records.sort_unstable();
    Ok(records)
}
