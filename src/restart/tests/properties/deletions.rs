//! A SearchCluster that is deleted at any moment.

use proptest::prelude::*;

use super::super::scenario::play_line;
use super::faults::{self, Fault};
use super::{Case, FAULT_TIME, TEMPLATE_VALUES, always_the_same, case};

impl Case {
    /// As [`Self::play`], while the SearchCluster is deleted, and the owner of the pods may change its
    /// template.
    fn play_deleted(&self) -> (String, Vec<String>) {
        let mut driver = self.driver();
        TEMPLATE_VALUES.iter().for_each(|line| play_line(&mut driver, line));
        self.asks(&mut driver);
        let (page, mut wrong) = self.run_with_faults(&mut driver);
        if !driver.world.object.is_gone() {
            wrong.push("the finalizer stays on a SearchCluster that is being deleted".into());
        }
        (page, wrong)
    }
}

/// Any fault, and the SearchCluster is deleted, more often while a restart has just begun. Not a look
/// without a pod that is there: without the only one, that looks like a deletion with all pods. And no
/// phase that a person writes onto a pod: nobody takes it from there any more.
fn happen(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let what = prop_oneof![6 => Just(Fault::Deleted), 1 => Just(Fault::DeletedWithPods)];
    let at = prop_oneof![1 => 0..within / 60, 2 => 0..within / 4, 1 => 0..within];
    (at, what, faults::templates(within)).prop_map(|(at, what, mut faults)| {
        use Fault::{BlindToPod, Missed, PhaseMoved};
        faults.retain(|(_, fault)| !matches!(fault, BlindToPod(_) | Missed(_) | PhaseMoved(_)));
        faults.push((at, what));
        faults::in_order(faults)
    })
}

/// A cluster whose SearchCluster is deleted at any moment.
fn deleted() -> impl Strategy<Value = Case> {
    (case(), happen(FAULT_TIME)).prop_map(|(case, faults)| Case { faults, ..case })
}

proptest! {
    #![proptest_config(always_the_same(48))]

    #[test] // proves RESTART-107
    fn a_searchcluster_that_is_deleted_goes_and_leaves_nothing_behind(case in deleted()) {
        let (page, wrong) = case.play_deleted();
        prop_assert!(wrong.is_empty(), "{}\n{page}", wrong.join("\n"));
    }
}
