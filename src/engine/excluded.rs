//! The setting that excludes nodes from allocation by their names.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::allocation::{read_call, write_call};
use super::answer::Answer;
use super::limited::Texts;
use super::transport::MASTER_TIMEOUT;
use super::{Engine, EngineClient, EngineError};

const NAME: &str = "cluster.routing.allocation.exclude._name";

/// The current values of the setting. The transient one wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludedNames {
    /// The persistent value.
    pub persistent: Option<String>,
    /// The transient value.
    pub transient: Option<String>,
}

impl EngineClient {
    /// Reads the current values of the setting.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn excluded_names(&self, engine: &Engine) -> Result<ExcludedNames, EngineError> {
        parse(&self.of_a_member(engine, &read_call()).await?)
    }

    /// Sets the values that are given; `Some(None)` unsets one.
    ///
    /// # Errors
    /// See [`EngineError`]. A node that confirms late is no error: the setting is in force.
    pub async fn exclude_names(
        &self,
        persistent: Option<&Option<String>>,
        transient: Option<&Option<String>>,
    ) -> Result<(), EngineError> {
        let call = write_call(changed(persistent, transient), MASTER_TIMEOUT);
        self.transport.send(&call).await?.acknowledged()
    }
}

pub(super) fn changed(
    persistent: Option<&Option<String>>,
    transient: Option<&Option<String>>,
) -> Value {
    let levels = [("persistent", persistent), ("transient", transient)];
    let given = levels.into_iter().filter_map(|(level, value)| Some((level, value?)));
    let body: Map<String, Value> =
        given.map(|(level, value)| (level.to_owned(), json!({ NAME: value }))).collect();
    body.into()
}

pub(super) fn parse(answer: &Answer) -> Result<ExcludedNames, EngineError> {
    #[derive(Default, Deserialize)]
    struct Level {
        #[serde(rename = "cluster.routing.allocation.exclude._name")]
        names: Option<Texts>,
    }
    #[derive(Deserialize)]
    struct Body {
        persistent: Level,
        transient: Level,
    }
    let Body { persistent, transient } = answer.read()?;
    let text = |level: Level| level.names.map(|names| names.0.join(","));
    Ok(ExcludedNames { persistent: text(persistent), transient: text(transient) })
}
