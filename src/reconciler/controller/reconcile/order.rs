//! In which order the actions of a plan are carried out. Those of one part do not depend on each
//! other.

use super::stops::need_live_reads;
use stayput_restart::Action;

/// The actions of a plan; the parts are carried out one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order<'a> {
    pub(super) first: Vec<&'a Action>,
    /// Live reads must confirm them.
    pub(super) stops: Vec<&'a Action>,
    /// Flushes beside stops: one may take so long that a stop after it would be decided on an old
    /// observation.
    pub(super) last: Vec<&'a Action>,
}

/// Where there is no stop, a flush waits for nothing.
pub(super) fn in_order(actions: &[Action]) -> Order<'_> {
    let (stops, others): (Vec<&Action>, Vec<&Action>) =
        actions.iter().partition(|action| need_live_reads(action));
    let is_last = |action: &&Action| !stops.is_empty() && matches!(action, Action::Flush { .. });
    let (last, first) = others.into_iter().partition(is_last);
    Order { first, stops, last }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Action {
        Action::Flush { node: "logs-1".into() }
    }

    #[test]
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
        assert_eq!(order.first, [&flush(), &Action::ClearVotingExclusions]);
        assert!(order.stops.is_empty() && order.last.is_empty());
    }
}
