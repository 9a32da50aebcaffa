//! Changes of a config in nothing that counts.

use std::collections::BTreeSet;

use super::world::World;
use crate::{Action, OnConfigChange, Policy, Snapshot, Sources, plan};

/// A node that runs on the config `a`, at rest.
struct Node(Snapshot);

impl Node {
    fn new() -> Self {
        let (mut snapshot, _) = World::new(&[("logs-0", "master+data")]).observe(&BTreeSet::new());
        snapshot.cluster.has_status = true;
        let manager = snapshot.pods[0].manager.as_mut().expect("it answers");
        manager.run.as_mut().expect("a run").checksum = Some("a".to_owned());
        (manager.mounted, manager.last_good) = (Some("a".to_owned()), None);
        Self(snapshot)
    }

    /// Whether it is restarted, or to be restarted, once the sources have this config, and it is
    /// seen of these configs that nothing that counts differs.
    fn restarts_for(&mut self, wanted: &str, alike: &[&str]) -> bool {
        self.0.pods[0].sources = Sources::Checksum(wanted.to_owned());
        self.look(alike)
    }

    fn look(&mut self, alike: &[&str]) -> bool {
        let Snapshot { pods, ledger, .. } = &mut self.0;
        let alike = alike.iter().map(|one| (*one).to_owned()).collect();
        pods[0].ignores_change = pods[0]
            .change()
            .is_some_and(|(from, to)| ledger.ignored_changes.covers(from, to, &alike));
        let policy = Policy { on_config_change: OnConfigChange::Rolling, ..Policy::default() };
        for _ in 0..3 {
            let made = plan(&self.0, &policy);
            let written = made.actions.iter().find_map(|action| match action {
                Action::WriteLedger(ledger) => Some(ledger),
                _ => None,
            });
            let Some(written) = written else { return false };
            if written.restart.is_some() {
                return true;
            }
            self.0.ledger = (**written).clone();
        }
        panic!("it never rests: {:?}", self.0.ledger);
    }
}

#[test]
fn another_config_restarts_the_node() {
    assert!(Node::new().restarts_for("b", &[]));
    assert!(Node::new().restarts_for("b", &["c"]));
}

#[test] // proves UPDATE-61
fn once_ignored_a_change_restarts_nothing_when_the_annotation_goes() {
    let mut node = Node::new();
    assert!(!node.restarts_for("a", &[]));
    assert!(!node.restarts_for("b", &["a"]), "it is ignored");
    assert!(!node.look(&[]), "the annotation is gone");
    assert!(!node.look(&[]), "and another reconciler looks");
    assert!(node.restarts_for("c", &[]), "what changes from then on counts");
}

#[test]
fn a_second_ignored_change_is_judged_from_the_first() {
    let mut node = Node::new();
    assert!(!node.restarts_for("b", &["a"]));
    // Another key is ignored now: only `b`, which is mounted, differs from `c` in nothing else.
    assert!(!node.restarts_for("c", &["b"]));
    assert!(!node.look(&[]));
    assert!(node.restarts_for("b", &[]), "back again, and it counts now");
}

#[test] // proves UPDATE-61
fn back_on_what_it_runs_on_it_forgets_what_that_counted_as() {
    let mut node = Node::new();
    assert!(!node.restarts_for("b", &["a"]));
    assert!(!node.restarts_for("a", &[]));
    assert!(node.0.ledger.ignored_changes.is_empty());
    assert!(node.restarts_for("b", &[]));
}

#[test]
fn what_is_not_known_for_a_while_is_not_forgotten() {
    let mut node = Node::new();
    assert!(!node.restarts_for("b", &["a"]));
    node.0.pods[0].sources = Sources::Absent("Secret logs is absent".to_owned());
    assert!(!node.look(&[]));
    let manager = node.0.pods[0].manager.clone();
    node.0.pods[0].manager = Err(crate::Unknown { message: "no answer".to_owned() });
    assert!(!node.restarts_for("b", &[]));
    node.0.pods[0].manager = manager;
    assert!(!node.look(&[]));
}
