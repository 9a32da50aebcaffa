//! What is planned for a SearchCluster that has no status yet.

use super::world::World;
use crate::changes::LATER;
use crate::{Action, Ledger, Plan, Policy, Snapshot, annotation, plan};

fn new_cluster() -> Snapshot {
    let mut world = World::new(&[("logs-0", "master+data")]);
    let (mut snapshot, _) = world.observe(&Default::default());
    snapshot.cluster.has_status = false;
    snapshot
}

fn written(made: &Plan) -> Option<&Ledger> {
    made.actions.iter().find_map(|action| match action {
        Action::WriteLedger(ledger) => Some(&**ledger),
        _ => None,
    })
}

#[test]
fn it_is_looked_at_again_soon() {
    let mut snapshot = new_cluster();
    assert_eq!(plan(&snapshot, &Policy::default()).requeue_after, LATER);
    snapshot.cluster.has_status = true;
    assert!(plan(&snapshot, &Policy::default()).requeue_after > LATER, "it has a status");
}

#[test]
fn the_first_status_has_what_is_known_of_the_configs() {
    let mut snapshot = new_cluster();
    snapshot.configs.add("0123456789abcdef", &[("cluster.name".into(), "logs".into())].into());
    let first = plan(&snapshot, &Policy::default());
    let ledger = written(&first).expect("a ledger is written");
    assert_eq!(ledger.configs, snapshot.configs);

    (snapshot.ledger, snapshot.cluster.has_status) = (ledger.clone(), true);
    let second = plan(&snapshot, &Policy::default());
    assert_eq!(written(&second), None, "there is no second status");
}

#[test] // proves RESTART-99
fn a_phase_that_is_older_than_the_status_is_taken_from_its_pod_and_not_carried_out() {
    let mut snapshot = new_cluster();
    let phase = (annotation::PHASE.to_owned(), "schedule-coordinated".to_owned());
    snapshot.pods[0].annotations.extend([phase]);
    let first = plan(&snapshot, &Policy::default());
    let ledger = written(&first).expect("it is remembered");
    assert_eq!(ledger.restart, None);
    let says = |made: &Plan, what: &str| {
        made.actions
            .iter()
            .any(|one| matches!(one, Action::RecordEvent(event) if event.message.contains(what)))
    };
    assert!(says(&first, "on logs-0 is older than this SearchCluster's status"));

    (snapshot.ledger, snapshot.cluster.has_status) = (ledger.clone(), true);
    let second = plan(&snapshot, &Policy::default());
    let Some(Action::PatchPod { changes, .. }) = second.actions.first() else {
        panic!("{second:?}")
    };
    assert_eq!(changes[annotation::PHASE].wanted, None);

    snapshot.pods[0].annotations.remove(annotation::PHASE);
    let third = plan(&snapshot, &Policy::default());
    assert!(written(&third).expect("it is forgotten").old_phases.is_empty());
    snapshot.ledger.old_phases.clear();
    snapshot.pods[0].annotations.insert(annotation::PHASE.into(), "schedule".into());
    let fourth = plan(&snapshot, &Policy::default());
    assert!(written(&fourth).expect("a later one begins").restart.is_some());
}

#[test] // proves RESTART-99
fn a_phase_on_the_searchcluster_that_is_older_than_the_status_is_left_alone() {
    let mut snapshot = new_cluster();
    let phase = (annotation::PHASE.to_owned(), "schedule-rolling".to_owned());
    snapshot.cluster.annotations.extend([phase]);
    let first = plan(&snapshot, &Policy::default());
    let ledger = written(&first).expect("it is remembered");
    (snapshot.ledger, snapshot.cluster.has_status) = (ledger.clone(), true);
    let second = plan(&snapshot, &Policy::default());
    assert!(!second.actions.iter().any(|one| matches!(one, Action::ClaimTrigger { .. })));
}
