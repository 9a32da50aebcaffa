//! Impact of a node's stop that the rules allow.

use super::{Evaluation, QuorumAfterStop, unreplicated_index};
use crate::Pod;

/// Impact of the stop of a node that passed the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StopImpact {
    /// Name of the node that takes over the vote before the stop.
    pub(crate) vote_recipient: Option<String>,
    /// True if the node passed only because an outage is allowed.
    pub(crate) costs_quorum: bool,
    /// True if only the request can have allowed the outage, because the policy allows none.
    pub(crate) by_request: bool,
    /// True if the engine need not answer: the whole set has failed, or no master is elected.
    pub(crate) without_engine: bool,
    /// End of a message: the shards that are unavailable until the node is back.
    pub(crate) unavailable: String,
}

impl StopImpact {
    /// Impact of the stop of a candidate that passed the rules.
    pub(crate) fn of(pod: &Pod, evaluation: &Evaluation<'_>) -> Self {
        let Some(candidate) = evaluation.peer(&pod.uid) else { return Self::default() };
        let unavailable = unreplicated_index::unavailable(evaluation, candidate);
        let by_request = !evaluation.policy.allow_outage;
        let impact = Self { unavailable, by_request, ..Self::default() };
        match evaluation.quorum_after_stop(candidate) {
            QuorumAfterStop::Kept => impact,
            QuorumAfterStop::KeptByHandover(vote_recipient) => {
                Self { vote_recipient: Some(vote_recipient), ..impact }
            }
            QuorumAfterStop::Lost(_) => Self { costs_quorum: true, ..impact },
        }
    }

    /// End of an event's message about the impact. `hands_over`: the recipient does get the vote.
    pub(crate) fn describe(&self, hands_over: bool) -> String {
        let quorum = match &self.vote_recipient {
            Some(vote_recipient) if hands_over => {
                format!("; it has the only vote and hands it over to {vote_recipient} first")
            }
            None if !self.costs_quorum => String::new(),
            Some(_) | None => format!(
                "; this costs the quorum: no master can be elected until it is back ({})",
                if self.by_request {
                    "allowOutage of the request"
                } else {
                    "spec.restart.allowOutage"
                }
            ),
        };
        quorum + &self.unavailable
    }
}
