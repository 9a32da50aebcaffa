//! One line of `watch`, as data.

use crate::format::{after_colon, node_count, rounded_duration};
use crate::page::Tone;
use stayput_restart::{HistoryEntry, Outcome, Time};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Time of the observation.
    pub(crate) time: Time,
    /// The node of the change; absent for the cluster as a whole.
    pub(crate) node: Option<String>,
    pub(crate) message: String,
    /// Entry of the restart in the history, in the last line.
    pub(crate) ended: Option<HistoryEntry>,
    pub(crate) tone: Tone,
    /// True if the line gives a reason why there may be no further line, or ends such a reason.
    pub(crate) is_trouble: bool,
}

impl Line {
    pub(super) const fn cluster(time: Time, tone: Tone, message: String) -> Self {
        Self { time, node: None, message, ended: None, tone, is_trouble: false }
    }

    /// A line with a reason why there may be no further line, or with the end of such a reason.
    pub(crate) fn trouble(time: Time, tone: Tone, message: String) -> Self {
        Self { is_trouble: true, ..Self::cluster(time, tone, message) }
    }

    pub(super) fn node(time: Time, node: &str, tone: Tone, message: String) -> Self {
        let node = Some(node.to_owned());
        Self { node, ..Self::cluster(time, tone, message) }
    }

    /// The last line.
    pub(super) fn ended(time: Time, entry: &HistoryEntry) -> Self {
        let message = format!(
            "restart {} {}: {} in {}{}",
            entry.id,
            entry.outcome.as_str(),
            node_count(entry.nodes as usize),
            rounded_duration(entry.seconds),
            after_colon(&entry.reason)
        );
        let tone = if entry.outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
        Self { ended: Some(entry.clone()), ..Self::cluster(time, tone, message) }
    }
}
