//! Whole runs: whoever decides is killed after any action, and each decision is made from what is
//! there.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::nothing;
use super::world::{World, is_data, is_master};
use crate::changes::Changes;
use crate::ledger::LedgerChange;
use crate::{Action, AllocationBefore};

type Counts = (u32, Option<u32>);

/// Masters, data nodes, a set that may be gone in the end, and what a person has excluded.
fn worlds() -> impl Strategy<Value = World> {
    let count = || (1u32..6).prop_flat_map(|now| (Just(now), (1..=now).prop_map(Some)));
    let old = (1u32..4).prop_flat_map(|now| (Just(now), prop::option::of(1..=now)));
    let value = || prop::option::of(prop::sample::select(vec!["", "x, y", "logs-data-1"]));
    let text = |value: Option<&str>| value.map(str::to_owned);
    (count(), count(), old, value(), value()).prop_map(
        move |(masters, data, old, persistent, transient): (Counts, Counts, Counts, _, _)| {
            let mut world = World::of(&[
                ("masters", masters.0, masters.1),
                ("data", data.0, data.1),
                ("aold", old.0, old.1),
            ]);
            world.excluded =
                AllocationBefore { persistent: text(persistent), transient: text(transient) };
            for node in world.listed.iter().filter(|node| is_data(node)) {
                world.shards.insert(node.clone(), 2);
            }
            world
        },
    )
}

fn excluded(world: &World) -> BTreeSet<String> {
    let AllocationBefore { persistent, transient } = &world.excluded;
    let value = transient.as_ref().or(persistent.as_ref());
    value.into_iter().flat_map(|value| value.split(',')).map(|name| name.trim().into()).collect()
}

/// One shard leaves an excluded node.
fn move_shard(world: &mut World) {
    let excluded = excluded(world);
    let from = world.shards.iter().find(|(node, count)| **count > 0 && excluded.contains(*node));
    let Some(from) = from.map(|(node, _)| node.clone()) else { return };
    let to = world.listed.iter().find(|node| is_data(node) && !excluded.contains(*node));
    let Some(to) = to.cloned() else { return };
    *world.shards.entry(from).or_default() -= 1;
    *world.shards.entry(to).or_default() += 1;
}

/// The next step, if there is one.
fn decide(world: &World) -> Option<Changes> {
    let step = super::decide(&world.snapshot()).changes;
    (!step.ledger.is_empty() || !step.actions.is_empty()).then_some(step)
}

/// Decides and acts until nothing is left to do.
fn run(mut world: World, mut check: impl FnMut(&World, &Changes)) -> World {
    for _ in 0..400 {
        match decide(&world) {
            Some(step) => {
                check(&world, &step);
                world.act(step);
            }
            None if excluded(&world)
                .iter()
                .all(|node| world.shards.get(node).is_none_or(|n| *n == 0)) =>
            {
                break;
            }
            None => move_shard(&mut world),
        }
    }
    world
}

proptest! {
    #[test] // proves DECLARE-32
    fn it_ends_with_what_is_declared_and_nothing_of_ours(before in worlds()) {
        let shards: usize = before.shards.values().sum();
        let after = run(before.clone(), |world, step| {
            if let [Action::RemoveNode { set, replicas }] = &step.actions[..] {
                let set = world.sets.iter().find(|one| one.name == *set).unwrap();
                let node = set.node(*replicas);
                assert!(*replicas >= set.wanted, "{node} is declared");
                assert_eq!(world.shards.get(&node).copied().unwrap_or(0), 0, "{node} is not empty");
                assert!(!world.voters.contains(&node), "{node} votes");
                assert!(world.debts.nodes.contains(&node), "it was not written down");
            }
            if let [Action::ExcludeVoter { node }] = &step.actions[..] {
                assert_eq!(world.debts.voter.as_ref(), Some(node), "it was not written down");
            }
        });
        for set in &after.sets {
            prop_assert_eq!(set.replicas, set.wanted);
        }
        prop_assert!(after.sets.iter().all(|set| set.is_declared));
        prop_assert_eq!(&after.debts, &nothing());
        prop_assert_eq!(&after.excluded, &before.excluded);
        prop_assert!(after.excluded_voters.is_empty());
        prop_assert_eq!(after.shards.values().sum::<usize>(), shards);
        prop_assert!(after.listed.iter().any(|node| is_master(node)));
    }

    /// Windows open and close at any time: while none is open no node begins to leave and none is
    /// taken away, and in the end it is as without windows.
    #[test] // proves DECLARE-34
    fn outside_of_the_windows_nothing_begins_and_no_node_goes(
        before in worlds(),
        open in prop::collection::vec(any::<bool>(), 1..30),
    ) {
        let mut world = before;
        for is_open in open {
            world.outside_windows = !is_open;
            match decide(&world) {
                Some(step) => {
                    if !is_open {
                        let goes = |action: &Action| {
                            matches!(action, Action::RemoveNode { .. } | Action::ExcludeVoter { .. })
                        };
                        prop_assert!(!step.actions.iter().any(goes), "{step:?}");
                        if let [LedgerChange::SetLeaving { leaving, .. }] = &step.ledger[..] {
                            let has_begun = &world.debts.nodes;
                            prop_assert!(leaving.nodes.is_subset(has_begun), "{leaving:?}");
                        }
                    }
                    world.act(step);
                }
                None => move_shard(&mut world),
            }
        }
        world.outside_windows = false;
        let after = run(world, |_, _| {});
        prop_assert!(after.sets.iter().all(|set| set.is_declared && set.replicas == set.wanted));
        prop_assert_eq!(&after.debts, &nothing());
    }

    /// After any number of actions the counts are as they were: every node that is still there
    /// stays, and nothing of ours is left.
    #[test] // proves DECLARE-38
    fn a_declaration_that_is_taken_back_leaves_nothing(before in worlds(), at in 0usize..40) {
        let mut world = before.clone();
        for _ in 0..at {
            match decide(&world) {
                Some(step) => world.act(step),
                None => move_shard(&mut world),
            }
        }
        for set in &mut world.sets {
            (set.wanted, set.is_declared) = (set.replicas, true);
        }
        let there = world.listed.clone();
        let after = run(world, |_, step| {
            let removes = |action: &Action| {
                matches!(action, Action::RemoveNode { .. } | Action::RemoveNodeSet { .. })
            };
            assert!(!step.actions.iter().any(removes), "{step:?}");
        });
        prop_assert_eq!(&after.listed, &there);
        prop_assert_eq!(&after.debts, &nothing());
        prop_assert_eq!(&after.excluded, &before.excluded);
        prop_assert!(after.excluded_voters.is_empty());
    }
}
