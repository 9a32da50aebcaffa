//! The order in which the actions of a plan are carried out. Those of one part do not depend on each other.

use super::stops::need_live_reads;
use stayput_restart::Action;

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

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeMap;

    use stayput_api::ConfigChoice;
    use stayput_restart::{AllocationBefore, Marker};

    fn flush() -> Action {
        Action::Flush { node: "logs-1".into() }
    }

    #[test] // proves RESTART-13
    fn stops_go_out_before_flushes_of_other_members() {
        let stop =
            Action::Stop { uid: "logs-2".into(), sequence: 1, drain: 0, resume: None, exit: false };
        let delete = Action::DeletePod { uid: "logs-2".into() };
        for stop in [stop, delete] {
            let actions = [flush(), stop.clone(), Action::ClearVotingExclusions];
            let order = in_order(&actions);
            assert_eq!(order.first, [&Action::ClearVotingExclusions]);
            assert_eq!((order.stops, order.last), (vec![&stop], vec![&flush()]));
        }
    }

    #[test]
    fn without_a_stop_a_flush_is_among_the_first() {
        let actions = [flush(), Action::ClearVotingExclusions];
        let order = in_order(&actions);
        assert_eq!(order.first, [&Action::ClearVotingExclusions, &flush()]);
        assert!(order.stops.is_empty() && order.last.is_empty());
    }

    #[test]
    fn a_stop_is_prepared_by_the_limit_of_allocation_without_a_start() {
        let marker = Marker {
            cluster: "search/logs".into(),
            restart: "r-1".into(),
            before: AllocationBefore::default(),
        };
        let limit = Action::TightenAllocation { value: "primaries".into(), marker };
        let start = Action::Start {
            uid: "logs-2".into(),
            sequence: 2,
            checksum: None,
            config: ConfigChoice::Mounted,
        };
        assert!(prepare_a_stop(&[limit.clone(), flush()]));
        assert!(!prepare_a_stop(&[limit, start]));
        assert!(!prepare_a_stop(&[flush()]));
    }

    #[test] // proves RESTART-32
    fn a_start_waits_for_no_flush_and_for_no_annotation_of_other_pods() {
        let patch = Action::PatchPod { uid: "logs-3".into(), changes: BTreeMap::new() };
        let start = Action::Start {
            uid: "logs-2".into(),
            sequence: 2,
            checksum: None,
            config: ConfigChoice::Mounted,
        };
        let actions = [flush(), patch.clone(), Action::ClearVotingExclusions, start.clone()];
        let order = in_order(&actions);
        assert_eq!(order.first, [&start, &Action::ClearVotingExclusions, &flush()]);
        assert_eq!(order.last, [&patch]);
    }
}
