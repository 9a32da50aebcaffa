//! Plans for shuffled, partial and old snapshots.

use proptest::prelude::*;

use super::super::driver::Driver;
use super::super::scenario::play_line;
use super::{Case, always_the_same, case};
use crate::tests::lint::faultless_plan;
use crate::{Snapshot, Unknown, plan};

/// Snapshots from all along a run in which everything goes as it should.
pub(crate) fn snapshots(case: &Case) -> (Driver, Vec<Snapshot>) {
    let mut driver = case.driver();
    driver.fates.clear();
    play_line(&mut driver, "change config logs-* v2");
    let asked = format!("request {} r1 deadline 15m{}", case.how.as_str(), case.part);
    play_line(&mut driver, &asked);
    let mut seen = Vec::new();
    for _ in 0..60 {
        let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
        seen.push(snapshot);
        driver.run(1_500, |_| false);
    }
    (driver, seen)
}

proptest! {
    #![proptest_config(always_the_same(8))]

    #[test]
    fn the_order_of_what_was_read_is_of_no_matter(case in case(), turn in 1_usize..5) {
        let (driver, seen) = snapshots(&case);
        for snapshot in seen {
            let mut other = snapshot.clone();
            let pods = other.pods.len();
            other.pods.rotate_left(turn % pods);
            other.pods.reverse();
            if let Ok(engine) = &mut other.engine {
                engine.nodes.reverse();
                if let Ok(copies) = &mut engine.shards {
                    *copies = copies.to_vec().into_iter().rev().collect();
                }
            }
            prop_assert_eq!(plan(&snapshot, &driver.policy), plan(&other, &driver.policy));
        }
    }

    #[test] // proves RESTART-19
    fn what_is_not_known_never_makes_a_bad_plan(case in case(), hidden in 0_usize..32) {
        let (driver, seen) = snapshots(&case);
        for mut snapshot in seen {
            let unknown = || Unknown { message: "the engine or its manager does not answer this time".into() };
            for (at, pod) in snapshot.pods.iter_mut().enumerate() {
                if hidden & (1 << at) != 0 {
                    pod.manager = Err(unknown());
                }
            }
            faultless_plan(&snapshot, &driver.policy);
            if let Ok(engine) = &mut snapshot.engine {
                engine.shards = Err(unknown());
                engine.voting = Err(unknown());
            }
            faultless_plan(&snapshot, &driver.policy);
            if let Ok(engine) = &mut snapshot.engine {
                engine.allocation = Err(unknown());
                engine.health = Err(unknown());
                engine.records = Err(unknown());
            }
            faultless_plan(&snapshot, &driver.policy);
            snapshot.engine = Err(unknown());
            faultless_plan(&snapshot, &driver.policy);
        }
    }

    #[test]
    fn an_old_ledger_beside_a_new_world_never_makes_a_bad_plan(case in case(), age in 1_usize..20) {
        let (driver, seen) = snapshots(&case);
        for at in age..seen.len() {
            let ledger = seen[at - age].ledger.clone();
            faultless_plan(&Snapshot { ledger, ..seen[at].clone() }, &driver.policy);
        }
    }

    #[test]
    fn old_pods_beside_a_new_ledger_never_make_a_bad_plan(case in case(), age in 1_usize..20) {
        let (driver, seen) = snapshots(&case);
        for at in age..seen.len() {
            let pods = seen[at - age].pods.clone();
            faultless_plan(&Snapshot { pods, ..seen[at].clone() }, &driver.policy);
        }
    }
}
