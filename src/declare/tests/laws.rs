//! What is true of any declarations, in any order, interrupted anywhere.

use proptest::prelude::*;
use serde_json::json;

use super::{applied, cluster, made, planned, set};
use crate::{Cluster, Observed};

/// Masters, data nodes, and more sets that may come later.
fn clusters() -> impl Strategy<Value = Cluster> {
    let more = proptest::collection::btree_map("[a-c]", (1u32..4, any::<bool>()), 0..3);
    (1u32..6, 1u32..6, more, 0u8..3).prop_map(|(masters, data, more, round)| {
        let mut sets =
            vec![set("masters", masters, &["cluster_manager"]), set("data", data, &["data"])];
        sets.extend(more.into_iter().map(|(name, (count, master))| {
            set(&name, count, if master { &["cluster_manager", "data"] } else { &["ingest"] })
        }));
        for set in &mut sets {
            set.config.insert("node.attr.round".into(), json!(round));
        }
        cluster(sets)
    })
}

/// The same with every count at least that of `before`, and with all of its sets.
fn grown(mut after: Cluster, before: &Cluster) -> Cluster {
    for old in &before.node_sets {
        match after.node_sets.iter_mut().find(|set| set.name == old.name) {
            Some(set) => set.count = set.count.max(old.count),
            None => after.node_sets.push(old.clone()),
        }
    }
    after
}

proptest! {
    #[test] // proves DECLARE-22
    fn the_order_of_node_sets_means_nothing(wanted in clusters(), before in clusters()) {
        let wanted = grown(wanted, &before);
        let mut reversed = wanted.clone();
        reversed.node_sets.reverse();
        let there = made(&before);
        prop_assert_eq!(planned(&wanted, &there), planned(&reversed, &there));
        prop_assert_eq!(
            planned(&wanted, &Observed::default()),
            planned(&reversed, &Observed::default())
        );
    }

    /// Whatever is there, the same is applied again and again until it is all there, at most one
    /// master more each time; then nothing changes any more.
    #[test] // proves DECLARE-22
    fn it_ends_with_what_is_declared(wanted in clusters(), before in clusters()) {
        let wanted = grown(wanted, &before);
        let mut there = made(&before);
        let masters = |there: &Observed| {
            let is_master = |name: &str| {
                let set = wanted.node_sets.iter().find(|set| set.name == name);
                set.is_some_and(|set| crate::cluster::roles(set).master)
            };
            let sets = there.sets.iter().filter(|(name, _)| is_master(name));
            sets.map(|(_, set)| set.replicas).sum::<u32>()
        };
        for _ in 0..40 {
            let plan = planned(&wanted, &there);
            let next = applied(there.clone(), &plan.objects);
            prop_assert!(masters(&next) <= masters(&there) + 1);
            if plan.waiting.is_none() {
                there = next;
                break;
            }
            prop_assert_ne!(&next, &there, "it waits, and all nodes are ready");
            there = next;
        }
        for set in &wanted.node_sets {
            prop_assert_eq!(there.sets[&set.name].replicas, set.count);
        }
        let plan = planned(&wanted, &there);
        prop_assert_eq!(&plan.waiting, &None);
        prop_assert_eq!(applied(there.clone(), &plan.objects), there);
    }

    /// The one who applies is killed after any object; the next one begins anew.
    #[test] // proves DECLARE-13
    fn an_interrupted_creation_is_finished_the_same(wanted in clusters(), at in 0usize..12) {
        let whole = planned(&wanted, &Observed::default());
        let part = &whole.objects[..at.min(whole.objects.len())];
        let there = applied(Observed::default(), part);
        prop_assert_eq!(planned(&wanted, &there), whole);
    }

    /// Fewer nodes are not applied: they leave one by one.
    #[test]
    fn never_a_lower_count(wanted in clusters(), before in clusters()) {
        let there = made(&before);
        let after = applied(there.clone(), &planned(&wanted, &there).objects);
        for (name, set) in &there.sets {
            prop_assert!(after.sets[name].replicas >= set.replicas);
        }
    }
}
