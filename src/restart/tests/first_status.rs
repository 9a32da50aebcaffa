//! What is planned for a SearchCluster that has no status yet.

use super::world::World;
use crate::draft::LATER;
use crate::{Action, Ledger, Plan, Policy, Snapshot, plan};

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
