//! Searchable snapshots: indices whose data is in a snapshot repository. Their store type says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::answer::Answer;
use super::limited;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{Engine, EngineClient, EngineError};

/// Values of `index.store.type` for Elasticsearch's searchable snapshots, fully and partially mounted ones,
/// and for OpenSearch's.
const FROM_REPOSITORY: [&str; 2] = ["snapshot", "remote_snapshot"];

impl EngineClient {
    /// Names of all searchable snapshots, hidden and closed ones too. The answer has only the indices with a
    /// store type of their own.
    ///
    /// # Errors
    /// See [`EngineError`]. The account needs the privilege `view_index_metadata`, in OpenSearch
    /// `indices:monitor/settings/get`.
    pub async fn searchable_snapshots(
        &self,
        engine: &Engine,
    ) -> Result<BTreeSet<String>, EngineError> {
        parse(&self.of_a_member(engine, &store_types_call()).await?)
    }
}

pub(super) fn store_types_call() -> Call {
    Call::get(format!(
        "/_all/_settings/index.store.type?expand_wildcards=all&flat_settings=true\
         &master_timeout={MASTER_TIMEOUT}"
    ))
    .of_shards()
}

pub(super) fn parse(answer: &Answer) -> Result<BTreeSet<String>, EngineError> {
    #[derive(Deserialize)]
    struct Body(#[serde(deserialize_with = "limited::by_index")] BTreeMap<String, Index>);
    #[derive(Deserialize)]
    struct Index {
        settings: Settings,
    }
    #[derive(Deserialize)]
    struct Settings {
        #[serde(rename = "index.store.type")]
        store_type: Option<String>,
    }
    let Body(indices) = answer.read()?;
    let is_one = |index: &Index| {
        let store_type = index.settings.store_type.as_deref();
        store_type.is_some_and(|store_type| FROM_REPOSITORY.contains(&store_type))
    };
    Ok(indices.into_iter().filter(|(_, index)| is_one(index)).map(|(name, _)| name).collect())
}
