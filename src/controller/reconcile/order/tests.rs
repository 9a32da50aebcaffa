mod new_phases;

use super::*;

use std::collections::BTreeMap;

use stayput_api::ConfigChoice;
use stayput_restart::{AllocationBefore, Marker};

fn flush() -> Action {
    Action::Flush { node: "logs-1".into() }
}

#[test] // proves RESTART-32
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
