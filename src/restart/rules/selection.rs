//! Selects the nodes that are stopped now from the candidates in their order.

use crate::changes::Check;
use crate::rules::evaluation::Evaluation;
use crate::rules::quorum::QuorumAfterStop;
use crate::rules::settled::unavailable_shards;
use crate::{Blocker, Code, Manager, Pod, Strategy};

/// Offers a slot to every candidate in their order: `begin` is called for each one that passes the
/// rules. Returns for each candidate whether it goes or what blocks it. A candidate that `begin`
/// blocks takes no slot.
pub(crate) fn select<'a>(
    evaluation: &mut Evaluation<'a>,
    candidates: &[&'a Pod],
    strategy: Strategy,
    mut begin: impl FnMut(&'a Pod, &'a Manager, &StopImpact) -> Check,
) -> Vec<(&'a Pod, Check)> {
    let mut selection = Selection::default();
    let offer = |pod: &&'a Pod| (*pod, selection.offer(evaluation, pod, strategy, &mut begin));
    candidates.iter().map(offer).collect()
}

/// The nodes selected so far from the candidates in their order.
#[derive(Debug, Default)]
struct Selection<'a> {
    selected: Vec<&'a str>,
    /// True if a node is blocked by a state that passes by itself: the elected master waits for that node.
    master_waits: bool,
}

impl<'a> Selection<'a> {
    /// Calls `begin` for the next candidate if it passes the rules and a slot is free.
    fn offer(
        &mut self,
        evaluation: &mut Evaluation<'a>,
        pod: &'a Pod,
        strategy: Strategy,
        begin: impl FnOnce(&'a Pod, &'a Manager, &StopImpact) -> Check,
    ) -> Check {
        if self.master_waits && evaluation.is_elected(pod) {
            return later("the elected master goes last".to_owned());
        }
        if !evaluation.has_free_slot() {
            return later(match self.selected[..] {
                [] => "every slot is taken; its turn comes later".to_owned(),
                [first] => format!("{first} goes first; its turn comes later"),
                _ => format!("{} go first; its turn comes later", list_names(&self.selected)),
            });
        }
        let begun = evaluation
            .check_candidate(pod, strategy)
            .and_then(|manager| begin(pod, manager, &StopImpact::of(pod, evaluation)));
        match &begun {
            Ok(()) => {
                evaluation.take_slot(&pod.uid);
                self.selected.push(&pod.node);
            }
            Err(blocker) => self.master_waits |= blocker.code.passes_by_itself(),
        }
        begun
    }
}

/// Number of nodes that a message names.
pub(crate) const NAMED: usize = 5;

/// Names joined for a message: `a`, `a and b`, `a, b and c`; of more than [`NAMED`] the first ones.
pub(crate) fn list_names(names: &[&str]) -> String {
    match names {
        [] => "no node".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

fn later(message: String) -> Check {
    Err(Blocker { code: Code::NotItsTurn, message })
}

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
        let unavailable = unavailable_shards(evaluation, candidate);
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
