//! The rules are the same for a node to be kept stopped, also once it is in the ledger: before its
//! stop other nodes may go down.

use super::table::cases;
use crate::index::{Index, NameSet};
use crate::rules::Evaluation;
use crate::{Request, Strategy};

/// The rules for d-0, before and after it is in the ledger to be kept stopped.
fn blockers(text: &str) -> [Option<&'static str>; 2] {
    let case = cases(&format!("case: any\n{text}")).remove(0);
    let view = Index::new(&case.snapshot);
    let evaluation =
        Evaluation::of(&view, &case.snapshot.ledger, &case.policy, &NameSet::default());
    let evaluation = evaluation.expect("an engine that answers");
    let pod = case.snapshot.pods.iter().find(|pod| pod.name == "d-0").expect("d-0");
    let request = Request { strategy: Strategy::Immediate, ..Request::default() };
    let before = evaluation.check_rules(pod, Strategy::Immediate);
    let again = evaluation.check_before_stop(pod, &request);
    [before, again].map(|check| check.err().map(|no| no.code.as_str()))
}

/// An immediate restart as well: its pod may be deleted by a drain of its machine, and its engine goes
/// at any moment.
#[test] // proves RULE-3
fn a_node_whose_pod_is_being_deleted_counts_as_down() {
    for (text, code) in [
        (
            "nodes: d-0 master, m-1 master (elected), m-2 master (terminating)\nmax: 2",
            Some("quorum"),
        ),
        (
            "nodes: d-0 master, m-1 master (elected), m-2 master, m-3 master, m-4 master (terminating)\n\
             max: 2",
            None,
        ),
        (
            "nodes: m-0 master (elected), d-0 data, d-1 data (terminating)\nshards: i/0: d-0* d-1\n\
             max: 2",
            Some("require_started_replica"),
        ),
    ] {
        assert_eq!(blockers(text), [code; 2], "{text}");
    }
}

#[test]
fn the_rules_hold_for_it() {
    let cases = [
        ("nodes: m-0 master (elected), d-0 data (kept stopped), d-1 data", [None; 2]),
        (
            "nodes: m-0 master (elected), d-0 data (kept stopped), d-1 data\nshards: i/0: d-0* ?",
            [Some("require_started_replica"); 2],
        ),
        (
            "nodes: m-0 master (elected), d-0 data (kept stopped), d-1 data\nshards: i/0: d-0*",
            [Some("unreplicated_index"); 2],
        ),
        (
            "nodes: m-0 master (elected), d-0 master (kept stopped), m-2 master (not in the cluster)",
            [Some("quorum"), Some("do_not_restart_healthy_node_if_MaxUnavailable_reached")],
        ),
        (
            "nodes: m-0 master (elected), d-0 data (kept stopped), d-1 data (not ready)",
            [Some("do_not_restart_healthy_node_if_MaxUnavailable_reached"); 2],
        ),
        (
            "nodes: m-0 master (elected), d-0 data (kept stopped), d-1 data (kept stopped)",
            [None; 2],
        ),
    ];
    for (text, answers) in cases {
        assert_eq!(blockers(text), answers, "{text}");
    }
}
