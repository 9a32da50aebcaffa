//! The JSON of a restart under way.

use schemars::JsonSchema;
use serde::Serialize;

use stayput_restart::{Ending, MemberStep, Request, Restart, Time};

/// A restart under way.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RestartOutput {
    request: Request,
    #[schemars(with = "String")]
    started: Time,
    /// How many nodes are part of it.
    nodes: usize,
    /// How many of them are finished.
    finished: usize,
    /// How it will end, once no further node is stopped.
    ending: Option<Ending>,
}

impl RestartOutput {
    pub(super) fn new(restart: &Restart) -> Self {
        let finished = restart.members.iter().filter(|member| member.step == MemberStep::Finished);
        Self {
            request: restart.request.clone(),
            started: restart.started,
            nodes: restart.members.len(),
            finished: finished.count(),
            ending: restart.ending.clone(),
        }
    }
}
