//! The allocation setting, and our marker beside it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{Engine, EngineClient, EngineError};

/// Cluster setting that limits which shards may be allocated.
const ENABLE: &str = "cluster.routing.allocation.enable";
/// Cluster setting that engines store and do not use.
const MARKER: &str = "cluster.metadata.stayput";

/// The current allocation settings. Unset is not the same as `all`: then the configuration of the nodes
/// counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Allocation {
    /// The persistent value.
    pub persistent: Option<String>,
    /// The transient value, which wins over the persistent one.
    pub transient: Option<String>,
    /// Our marker: the restart that limited allocation, and the values to restore.
    pub marker: Option<String>,
}

impl Allocation {
    /// The value that is in force, if one is set.
    pub fn effective(&self) -> Option<&str> {
        self.transient.as_deref().or(self.persistent.as_deref())
    }
}

impl EngineClient {
    /// Reads the current allocation settings.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn allocation(&self, engine: &Engine) -> Result<Allocation, EngineError> {
        parse(&self.of_a_member(engine, &read_call()).await?)
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

pub(super) fn parse(answer: &Answer) -> Result<Allocation, EngineError> {
    #[derive(Default, Deserialize)]
    struct Level {
        #[serde(rename = "cluster.routing.allocation.enable")]
        enable: Option<String>,
        #[serde(rename = "cluster.metadata.stayput")]
        marker: Option<String>,
    }
    #[derive(Deserialize)]
    struct Body {
        persistent: Level,
        transient: Level,
    }
    let Body { persistent, transient } = answer.read()?;
    Ok(Allocation {
        persistent: persistent.enable,
        transient: transient.enable,
        marker: persistent.marker.or(transient.marker),
    })
}
