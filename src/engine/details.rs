//! Reads the details that each node reports about itself: other nodes do not know them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::answer::Answer;
use super::limited::{self, Texts};
use super::transport::Call;
use super::{EngineClient, EngineError, Version};

/// Details of each node, by its id.
pub(super) type Details = BTreeMap<String, Reported>;

/// Details that one node has reported.
#[derive(Debug, Deserialize)]
pub(super) struct Reported {
    pub(super) version: Version,
    #[serde(deserialize_with = "limited::of_nodes")]
    pub(super) roles: BTreeSet<String>,
    pub(super) jvm: Jvm,
    #[serde(default)]
    settings: Settings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    path: Path,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Path {
    data: Texts,
    home: Option<String>,
}

impl Reported {
    /// The node's data directories: those of `path.data`, which may be several after a comma, or `data` in
    /// the engine's own directory. Empty if they are not reported.
    pub(super) fn data_paths(&self) -> Vec<String> {
        let Path { data, home } = &self.settings.path;
        let given = data.0.iter().flat_map(|text| text.split(','));
        let given: Vec<String> = given.map(|path| path.trim().to_owned()).collect();
        if given.is_empty() {
            home.iter().map(|home| format!("{home}/data")).collect()
        } else {
            given
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Jvm {
    pub(super) start_time_in_millis: u64,
    #[serde(default)]
    pub(super) mem: Memory,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Memory {
    pub(super) heap_max_in_bytes: Option<u64>,
}

impl EngineClient {
    /// Asks every node for its details; leaves out those that do not answer in time. Empty if the node that
    /// asks them does not answer.
    pub(super) async fn details(&self) -> Result<Details, EngineError> {
        let answer = self.transport.send(&call()).await;
        match answer.and_then(|answer| parse(&answer)) {
            Err(EngineError::NotReachable(_) | EngineError::Unanswered(_)) => Ok(Details::new()),
            read => read,
        }
    }
}

/// The request for details. A node that does not answer within a second is asked again at the next look.
pub(super) fn call() -> Call {
    let path = "/_nodes/_all/settings,jvm?timeout=1s&filter_path=\
                nodes.*.version,nodes.*.roles,nodes.*.jvm.start_time_in_millis,\
                nodes.*.jvm.mem.heap_max_in_bytes,nodes.*.settings.path.data,nodes.*.settings.path.home";
    Call::get(path).of_nodes()
}

pub(super) fn parse(answer: &Answer) -> Result<Details, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default, deserialize_with = "limited::by_node")]
        nodes: Details,
    }
    Ok(answer.read::<Body>()?.nodes)
}
