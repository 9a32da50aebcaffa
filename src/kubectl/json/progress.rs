//! The JSON of one line of `watch`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::progress::Line;
use stayput_restart::{HistoryEntry, Time};

/// One line of `watch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressOutput<'a> {
    /// When the change was observed.
    #[schemars(with = "String")]
    time: Time,
    /// The node it is about; none for the cluster as a whole.
    node: Option<&'a str>,
    /// The change, for people.
    message: &'a str,
    /// In the last line: how the restart ended.
    ended: Option<&'a HistoryEntry>,
}

impl<'a> ProgressOutput<'a> {
    pub(crate) fn new(line: &'a Line) -> Self {
        Self {
            time: line.time,
            node: line.node.as_deref(),
            message: &line.message,
            ended: line.ended.as_ref(),
        }
    }
}
