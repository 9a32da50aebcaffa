//! What each node reports about itself: other nodes do not know it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::answer::Answer;
use super::transport::Call;
use super::{EngineClient, EngineError, Version};

/// By the id of the node.
pub(super) type Details = BTreeMap<String, Reported>;

/// What one node has reported.
#[derive(Debug, Deserialize)]
pub(super) struct Reported {
    pub(super) version: Version,
    pub(super) roles: BTreeSet<String>,
    pub(super) jvm: Jvm,
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
    /// Asks every node; those that do not answer in time are left out. So are all if the one that
    /// asks them does not answer.
    pub(super) async fn details(&self) -> Result<Details, EngineError> {
        let answer = self.transport.send(&call()).await;
        match answer.and_then(|answer| parse(&answer)) {
            Err(EngineError::NotReachable(_) | EngineError::Unanswered(_)) => Ok(Details::new()),
            read => read,
        }
    }
}

/// A node that does not answer within a second is asked again at the next look.
pub(super) fn call() -> Call {
    let path = "/_nodes/_all/jvm?timeout=1s&filter_path=\
                nodes.*.version,nodes.*.roles,nodes.*.jvm.start_time_in_millis,\
                nodes.*.jvm.mem.heap_max_in_bytes";
    Call::get(path).large()
}

pub(super) fn parse(answer: &Answer) -> Result<Details, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        nodes: Details,
    }
    Ok(answer.read::<Body>()?.nodes)
}
