//! The cluster's health, as its elected master sees it.

use serde::Deserialize;

use super::answer::Answer;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{EngineClient, EngineError};

/// Answer to `GET /_cluster/health`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Health {
    /// The cluster's name.
    pub cluster_name: String,
    /// The worst shard's colour.
    pub status: Color,
    /// True if the request's condition was not met within a second, such as that the master has no pending
    /// tasks: the numbers may change.
    pub timed_out: bool,
    /// Number of nodes in the cluster.
    pub number_of_nodes: u64,
    /// Number of nodes that hold data.
    pub number_of_data_nodes: u64,
    /// Number of shard copies that are being built.
    pub initializing_shards: u64,
    /// Number of shard copies that move to another node.
    pub relocating_shards: u64,
    /// Number of shard copies without a node.
    pub unassigned_shards: u64,
    /// Number of primaries without a node; only Elasticsearch since 8.16 reports it.
    #[serde(default)]
    pub unassigned_primary_shards: Option<u64>,
    /// Number of shard copies without a node that wait for their node to come back.
    pub delayed_unassigned_shards: u64,
    /// Number of the master's pending tasks. Our own request may be counted: 1 is idle.
    pub number_of_pending_tasks: u64,
    /// Number of shard copies that are searched on the nodes' disks.
    pub number_of_in_flight_fetch: u64,
}

/// The worst shard's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// Every copy is started.
    #[serde(alias = "GREEN")]
    Green,
    /// Every primary is started.
    #[serde(alias = "YELLOW")]
    Yellow,
    /// Some primary is not started.
    #[serde(alias = "RED")]
    Red,
    /// A value that this version does not know.
    #[serde(other)]
    Unknown,
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
    if answer.status == 408 { answer.body() } else { answer.read() }
}
