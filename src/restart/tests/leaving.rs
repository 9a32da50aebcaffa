//! Nodes that leave: single decisions as tables in words, and whole runs.

mod runs;
mod table;
mod world;

use self::world::BASE;
use super::scenario::moment;
use crate::{
    Action, LeavePlan, Leaving, LeavingShards, Ledger, NodeSet, NodeSets, Policy, Request,
    Snapshot, Unknown, leave_plan, needs_engine, plan,
};

/// Every case of `table.txt`: the action, and what each node waits for.
#[test] // proves RULE-8, DECLARE-32, DECLARE-33, DECLARE-34
fn each_decision_of_the_table() {
    let cases = table::cases(include_str!("leaving/table.txt"));
    assert!(cases.len() > 20, "{} cases were read", cases.len());
    for case in cases {
        let mut snapshot = case.world.snapshot();
        if case.is_silent {
            snapshot.engine = Err(Unknown { message: "the engine does not answer".into() });
        }
        let plan = leave_plan(&snapshot, &Policy::default());
        assert_eq!(table::step(&plan.changes), case.does, "{}: {plan:#?}", case.name);
        for (node, text) in &case.says {
            let waits = plan.nodes.get(node).unwrap_or_else(|| panic!("{}: {node}", case.name));
            assert!(waits.contains(text), "{}: {node}: {waits}", case.name);
        }
        let refused = plan.refusal.unwrap_or_default();
        assert_eq!(refused.is_empty(), case.refused.is_empty(), "{}: {refused}", case.name);
        assert!(refused.contains(&case.refused), "{}: {refused}", case.name);
    }
}

/// Three nodes of one set, of which one leaves.
fn one_leaves(script: &[&str]) -> (Snapshot, Policy) {
    let (mut snapshot, policy) = moment(&[&["three nodes"], script].concat());
    snapshot.engine.clone_from(&BASE.engine);
    snapshot.cluster.finalizer = true;
    let set = NodeSet {
        name: "all".into(),
        stateful_set: "logs".into(),
        replicas: 3,
        wanted: 2,
        is_declared: true,
    };
    let shards = [("logs-2".to_owned(), LeavingShards::default())].into();
    snapshot.node_sets = Some(NodeSets { sets: vec![set], unfinished: None, shards });
    (snapshot, policy)
}

/// What logs-2 waits for.
fn waits((snapshot, policy): &(Snapshot, Policy)) -> Option<String> {
    leave_plan(snapshot, policy).nodes.remove("logs-2")
}

#[test] // proves DECLARE-34
fn nodes_leave_after_restarts_and_changes() {
    let update = "policy update relabel,restart,container,resize,replace";
    let outside = |templates: &[&str]| {
        one_leaves(&[&["windows closed for 6h", update], templates, &["run 1m"]].concat())
    };
    let one = outside(&["template logs-1 affinity=b"]);
    assert_eq!(waits(&one).as_deref(), Some("changes come first: 1 node waits for its restart"));
    let mut two = outside(&["template logs-0 affinity=b", "template logs-1 affinity=b"]);
    let expected = "changes come first: 2 nodes wait for their restart";
    assert_eq!(waits(&two).as_deref(), Some(expected));
    two.0.pods[1].update = Err(Unknown { message: "logs-1: not read".into() });
    assert_eq!(waits(&two).as_deref(), Some("changes come first: logs-1: not read"));

    let mut restart = one_leaves(&["pause", "request rolling r1", "run 200ms"]);
    restart.0.cluster.paused = false;
    assert!(waits(&restart).is_some_and(|why| why.starts_with("the restart r1 comes first")));
    restart.0.ledger = Ledger { queued: Some(Request::default()), ..Ledger::default() };
    assert!(waits(&restart).is_some_and(|why| why.contains("queued restart")));

    let none = one_leaves(&["run 1m"]);
    let step = leave_plan(&none.0, &none.1).changes;
    assert_eq!(table::step(&step), "write logs-2; persistent was unset");
}

/// The SearchCluster must not go before what is owed is paid.
#[test] // proves DECLARE-36
fn the_finalizer_comes_before_anything_is_owed() {
    let (mut snapshot, policy) = one_leaves(&["run 1m"]);
    snapshot.cluster.finalizer = false;
    assert!(needs_engine(&snapshot), "it is read for a node that leaves");
    assert_eq!(plan(&snapshot, &policy).actions, [Action::AddFinalizer]);
    snapshot.cluster.finalizer = true;
    let made = plan(&snapshot, &policy);
    let Some(Action::WriteLedger(ledger)) = made.actions.first() else { panic!("{made:#?}") };
    assert_eq!(ledger.debts.leaving.nodes, ["logs-2".to_owned()].into());
}

/// The decision of this plan, for the runs.
fn decide(snapshot: &Snapshot) -> LeavePlan {
    let plan = leave_plan(snapshot, &Policy::default());
    assert!(plan.changes.ledger.is_empty() || plan.changes.actions.is_empty(), "{plan:#?}");
    assert!(plan.changes.ledger.len() + plan.changes.actions.len() <= 1, "{plan:#?}");
    plan
}

/// Nothing is owed.
fn nothing() -> Leaving {
    Leaving::default()
}
