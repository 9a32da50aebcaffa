//! Selects the nodes that are stopped now from the candidates in their order.

use super::{Evaluation, StopImpact};
use crate::blocker::{Blocker, Check};
use crate::{Code, Manager, Pod, Strategy};

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
