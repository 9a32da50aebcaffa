//! Changes in the cluster: the allocation setting with our marker, the nodes excluded from allocation, voting
//! exclusions, and flushes. A failed flush never blocks a restart.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use stayput_restart::AllocationBefore;

use crate::answer::Answer;
use crate::limited::Texts;
use crate::transport::{Call, MASTER_TIMEOUT};
use crate::{Distribution, Engine, EngineClient, EngineError, Version};

/// Cluster setting that limits which shards may be allocated.
const ENABLE: &str = "cluster.routing.allocation.enable";
/// Cluster setting that engines store and do not use.
const MARKER: &str = "cluster.metadata.stayput";

/// The current allocation settings. Unset is not the same as `all`: then the configuration of the nodes
/// counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The persistent value.
    pub persistent: Option<String>,
    /// The transient value, which wins over the persistent one.
    pub transient: Option<String>,
    /// Our marker: the restart that limited allocation, and the values to restore.
    pub marker: Option<String>,
    /// Names of the nodes that are excluded from allocation, as they are written.
    pub excluded: AllocationBefore,
}

impl EngineClient {
    /// Reads the current allocation settings.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn allocation(&self, engine: &Engine) -> Result<Allocation, EngineError> {
        parse_allocation(&self.of_a_member(engine, &read_call()).await?)
    }

    /// Sets allocation to `value` (`primaries`, `none`…) and our marker to `marker`, in one
    /// request. The persistent value is set; the transient one only if `before` has one, because it
    /// would win.
    ///
    /// # Errors
    /// See [`EngineError`]. A node that confirms late is no error: the setting is in force.
    pub async fn tighten(
        &self,
        before: &Allocation,
        value: &str,
        marker: &str,
    ) -> Result<(), EngineError> {
        let call = write_call(tightened(before, value, marker), MASTER_TIMEOUT);
        self.transport.send(&call).await?.acknowledged()
    }

    /// Restores both values from `before`, and removes our marker, in one request. Nodes are not waited for:
    /// the engine answers once the elected master has the setting and has allocated shards with it, and a
    /// node that has joined just now would take long to confirm them.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn restore(&self, before: &Allocation) -> Result<(), EngineError> {
        let call = write_call(restored(before), "0s");
        self.transport.send(&call).await?.acknowledged()
    }
}

pub(super) fn read_call() -> Call {
    Call::get(format!("/_cluster/settings?flat_settings=true&master_timeout={MASTER_TIMEOUT}"))
}

/// The request that writes settings. `timeout`: time for the nodes to confirm, such as `0s`.
pub(super) fn write_call(body: Value, timeout: &str) -> Call {
    let path = "/_cluster/settings?flat_settings=true&master_timeout=";
    Call::put(format!("{path}{MASTER_TIMEOUT}&timeout={timeout}"), body)
}

pub(super) fn tightened(before: &Allocation, value: &str, marker: &str) -> Value {
    let mut body = json!({ "persistent": { ENABLE: value, MARKER: marker } });
    if before.transient.is_some() {
        body["transient"] = json!({ ENABLE: value });
    }
    body
}

/// Settings that restore `before`. Null unsets. A transient value that we never set is left out: newer
/// engines warn about it.
pub fn restored(before: &Allocation) -> Value {
    let mut body = json!({ "persistent": { ENABLE: before.persistent, MARKER: null } });
    if let Some(transient) = &before.transient {
        body["transient"] = json!({ ENABLE: transient });
    }
    body
}

pub(super) fn parse_allocation(answer: &Answer) -> Result<Allocation, EngineError> {
    #[derive(Default, Deserialize)]
    struct Level {
        #[serde(rename = "cluster.routing.allocation.enable")]
        enable: Option<String>,
        #[serde(rename = "cluster.metadata.stayput")]
        marker: Option<String>,
        #[serde(rename = "cluster.routing.allocation.exclude._name")]
        excluded: Option<Texts>,
    }
    #[derive(Deserialize)]
    struct Body {
        persistent: Level,
        transient: Level,
    }
    let Body { persistent, transient } = answer.read()?;
    let text = |names: Option<Texts>| names.map(|names| names.0.join(","));
    Ok(Allocation {
        excluded: AllocationBefore {
            persistent: text(persistent.excluded),
            transient: text(transient.excluded),
        },
        persistent: persistent.enable,
        transient: transient.enable,
        marker: persistent.marker.or(transient.marker),
    })
}

/// Cluster setting with the names of the nodes that are excluded from allocation.
const NAME: &str = "cluster.routing.allocation.exclude._name";

impl EngineClient {
    /// Sets the names of the nodes that are excluded from allocation, where a value is given; `Some(None)`
    /// unsets one.
    ///
    /// # Errors
    /// See [`EngineError`]. A node that confirms late is no error: the setting is in force.
    pub async fn exclude_names(
        &self,
        persistent: Option<&Option<String>>,
        transient: Option<&Option<String>>,
    ) -> Result<(), EngineError> {
        let call = write_call(excluded_body(persistent, transient), MASTER_TIMEOUT);
        self.transport.send(&call).await?.acknowledged()
    }
}

pub(super) fn excluded_body(
    persistent: Option<&Option<String>>,
    transient: Option<&Option<String>>,
) -> Value {
    let levels = [("persistent", persistent), ("transient", transient)];
    let given = levels.into_iter().filter_map(|(level, value)| Some((level, value?)));
    let body: Map<String, Value> =
        given.map(|(level, value)| (level.to_owned(), json!({ NAME: value }))).collect();
    body.into()
}

const PATH: &str = "/_cluster/voting_config_exclusions";

impl EngineClient {
    /// Excludes the node of this name from voting. The answer comes once neither voting
    /// configuration contains it, or after the engine's timeout; the exclusion is in force in both
    /// cases. A repeated request changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] for an engine without voting configurations, and for a name that
    /// could be taken for more than one node; otherwise see [`EngineError`].
    pub async fn exclude_voter(&self, engine: &Engine, node: &str) -> Result<(), EngineError> {
        let call = exclude_call(engine, node)?;
        parse_exclusion(&self.transport.send(&call).await?)
    }

    /// Removes every exclusion, also those of other clients. The nodes may still be in the cluster.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] for an engine without voting configurations; otherwise see
    /// [`EngineError`].
    pub async fn clear_voting_exclusions(&self, engine: &Engine) -> Result<(), EngineError> {
        parse_exclusion(&self.transport.send(&clear_call(engine)?).await?)
    }
}

/// The request that excludes a node from voting. Elasticsearch before 7.8 has the name in the path. Most
/// versions refuse `master_timeout` here.
pub(super) fn exclude_call(engine: &Engine, node: &str) -> Result<Call, EngineError> {
    has_configurations(engine)?;
    // A comma, a star or a leading `_` would reach other nodes.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if node.is_empty() || node.starts_with('_') || !node.chars().all(fits) {
        return Err(EngineError::Unusable(format!(
            "a node named {node:?} cannot be excluded from voting: the engine could take the name \
             for several nodes"
        ).into()));
    }
    let Engine { distribution, version, .. } = engine;
    let in_path = *distribution == Distribution::Elasticsearch && *version < Version::new(7, 8, 0);
    Ok(Call::post(if in_path {
        format!("{PATH}/{node}?timeout={MASTER_TIMEOUT}")
    } else {
        format!("{PATH}?node_names={node}&timeout={MASTER_TIMEOUT}")
    }))
}

pub(super) fn clear_call(engine: &Engine) -> Result<Call, EngineError> {
    has_configurations(engine)?;
    Ok(Call::delete(format!("{PATH}?wait_for_removal=false")))
}

fn has_configurations(engine: &Engine) -> Result<(), EngineError> {
    if engine.has_minimum_master_nodes() {
        return Err(EngineError::Unusable(
            format!(
                "{} {} has no voting configurations, but discovery.zen.minimum_master_nodes",
                engine.distribution, engine.version
            )
            .into(),
        ));
    }
    Ok(())
}

/// Checks that an exclusion, or its removal, is in force. The body is empty, and `{}` in some versions. An
/// exclusion that is in force but late is an error of the engine's: 500, or 429 from Elasticsearch 9.0 on.
pub(super) fn parse_exclusion(answer: &Answer) -> Result<(), EngineError> {
    let is_in_force =
        || answer.reason().starts_with("timed out waiting for voting config exclusions");
    if answer.status == 200 || is_in_force() { Ok(()) } else { Err(answer.refusal()) }
}

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
        let answer = self.transport.send(&flush_call(synced).within(timeout)).await;
        match answer.and_then(|answer| parse_flush(&answer, synced)) {
            Ok(flush) => flush,
            Err(error) => Flush::NotKnown(error.to_string()),
        }
    }
}

pub(super) fn flush_call(synced: bool) -> Call {
    Call::post(if synced { "/_flush/synced" } else { "/_flush" })
}

/// Reads the result of a flush. With 409 some copies were not flushed; the body is the same.
pub(super) fn parse_flush(answer: &Answer, synced: bool) -> Result<Flush, EngineError> {
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
