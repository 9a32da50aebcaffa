//! The order in which the actions of a plan are carried out. Those of one part do not depend on each other.
//! The phase of a stop is written late: most nodes are stopped within seconds, and then it costs no write.

use std::collections::BTreeMap;
use std::time::Duration;

use stayput_restart::{Action, Phase, annotation};
use tokio::time::Instant;

use crate::reconcile::live_reads::need_live_reads;

/// The actions of a plan; the parts are carried out one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order<'a> {
    pub(super) first: Vec<&'a Action>,
    /// Stops and deletions, which live reads must confirm.
    pub(super) stops: Vec<&'a Action>,
    /// Flushes beside stops: one may take so long that a stop after it would be decided on an old
    /// observation. Then annotations of pods: each may take as long as the apiserver's slowest webhook, and
    /// no node waits for them.
    pub(super) last: Vec<&'a Action>,
}

/// Orders the actions of a plan. A node that is down comes first: only so many actions are carried out at the
/// same time. Where there is no stop, a flush waits for nothing else.
pub(super) fn in_order(actions: &[Action]) -> Order<'_> {
    let (stops, others): (Vec<&Action>, Vec<&Action>) =
        actions.iter().partition(|action| need_live_reads(action));
    let is_last = |action: &&Action| match action {
        Action::Flush { .. } => !stops.is_empty(),
        Action::PatchPod { .. } => true,
        _ => false,
    };
    let (mut last, mut first): (Vec<&Action>, Vec<&Action>) = others.into_iter().partition(is_last);
    first.sort_by_key(|action| match action {
        Action::Start { .. } | Action::EndDrain { .. } => 0,
        Action::Flush { .. } => 2,
        Action::PatchMetadata { .. } => 3,
        _ => 1,
    });
    last.sort_by_key(|action| matches!(action, Action::PatchPod { .. }));
    Order { first, stops, last }
}

/// True if the actions limit allocation, and start nothing: the stop that follows waits only for a look at
/// their effect. A start is reported before.
pub(super) fn prepare_a_stop(actions: &[Action]) -> bool {
    let limits = |action: &Action| matches!(action, Action::TightenAllocation { .. });
    let starts = |action: &Action| matches!(action, Action::Start { .. });
    actions.iter().any(limits) && !actions.iter().any(starts)
}

/// Time after which the phase of a stop is written.
const SHOWN_AFTER: Duration = Duration::from_secs(5);

/// Time at which a plan first had the patch with the phase of a stop, by uid of the pod.
#[derive(Debug, Default)]
pub(crate) struct NewPhases(BTreeMap<String, Instant>);

impl NewPhases {
    /// The actions without the patches that only show a stop which has just begun. The next plans have these
    /// patches again.
    pub(crate) fn hold_back<'a>(
        &mut self,
        mut actions: Vec<&'a Action>,
        now: Instant,
    ) -> Vec<&'a Action> {
        let known = std::mem::take(&mut self.0);
        actions.retain(|action| {
            let Some(uid) = shows_a_stop(action) else { return true };
            let since = known.get(uid).copied().unwrap_or(now);
            self.0.insert(uid.to_owned(), since);
            now.duration_since(since) >= SHOWN_AFTER
        });
        actions
    }
}

/// Uid of the pod, for a patch that changes nothing but our own phase, to that of a stop.
fn shows_a_stop(action: &Action) -> Option<&str> {
    let Action::PatchPod { uid, changes } = action else { return None };
    let (phase, shown) = (changes.get(annotation::PHASE)?, changes.get(annotation::SHOWN)?);
    let is_stop =
        matches!(Phase::parse(phase.wanted.as_deref()?), Ok(Phase::Stop | Phase::StopCoordinated));
    // A phase that a person has written is replaced at once.
    let before = shown.seen.as_deref().and_then(|shown| shown.split_once(' '));
    let is_ours = phase.seen.as_deref() == before.map(|(_, phase)| phase);
    (is_stop && is_ours && changes.len() == 2).then_some(uid)
}

#[cfg(test)]
mod tests;
