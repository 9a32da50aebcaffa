//! A node that is in the cluster and has not said what it is: it hangs, or has just joined.

use super::table::cases;
use crate::index::{Index, NameSet};
use crate::rules::Evaluation;
use crate::{Code, Request, Strategy};

/// Blockers of each of these nodes, before its slot and before its stop, while d-1 is silent.
fn blockers(name: &str) -> [Option<&'static str>; 2] {
    let text = "case: any\nnodes: m-0 master (elected), m-1 master, m-2 master, d-0 data, d-1 data";
    let mut case = cases(text).remove(0);
    let engine = case.snapshot.engine.as_mut().expect("an engine that answers");
    for node in engine.nodes.iter_mut().filter(|node| node.name == "d-1") {
        node.roles.clear();
        node.roles_unknown = true;
    }
    let view = Index::new(&case.snapshot);
    let evaluation =
        Evaluation::of(&view, &case.snapshot.ledger, &case.policy, &NameSet::default());
    let evaluation = evaluation.expect("an engine that answers");
    let pod = case.snapshot.pods.iter().find(|pod| pod.name == name).expect("a pod");
    let before = evaluation.check_rules(pod, Strategy::Rolling);
    let again = evaluation.check_before_stop(pod, &Request::default());
    [before, again].map(|check| check.err().map(|no| no.code.as_str()))
}

#[test] // proves RESTART-15
fn a_node_that_has_not_reported_its_roles_is_not_stopped_and_counts_as_down() {
    assert_eq!(blockers("d-1"), [Some(Code::EngineUnreachable.as_str()); 2]);
    let down = "do_not_restart_healthy_node_if_MaxUnavailable_reached";
    assert_eq!(blockers("d-0"), [Some(down); 2]);
}
