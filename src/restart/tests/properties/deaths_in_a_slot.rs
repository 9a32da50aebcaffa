//! Engines that end by themselves while their node holds a slot, for changed pods.

use proptest::prelude::*;

use super::super::driver::Driver;
use super::faults::{Fault, in_order};
use super::{Case, FAULT_TIME, How, always_the_same, case};

/// Those in the list of templates that come up, and are not the first one.
const COME_UP: [usize; 7] = [1, 2, 6, 9, 14, 15, 16];

/// The owner changes its template while engines end by themselves in their slot, and people pause.
fn happen(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let changes = prop::collection::vec((0..within, prop::sample::select(&COME_UP)), 0..3);
    let death = (0..within, 0_u64..4_000, 10_000_u64..60_000);
    let deaths = prop::collection::vec(death, 4..12);
    (prop::sample::select(&COME_UP), changes, deaths).prop_map(|(first, changes, deaths)| {
        let mut faults = vec![(0, Fault::Template(first))];
        faults.extend(changes.into_iter().map(|(at, which)| (at, Fault::Template(which))));
        for (at, until_pause, until_resume) in deaths {
            let pause = at + until_pause;
            faults.push((at, Fault::HolderDies));
            faults.push((pause, Fault::Pause));
            faults.push((pause + until_resume, Fault::Resume));
        }
        in_order(faults)
    })
}

/// A cluster whose owner changes the template of its pods, while engines end in their slot.
fn deaths_in_a_slot() -> impl Strategy<Value = Case> {
    let times = prop::collection::vec(1_000_u64..25_000, 3);
    (case(), happen(FAULT_TIME), times, 0_u64..20_000).prop_map(
        |(mut case, faults, starts, flush_time)| {
            case.nodes.truncate(3);
            case.how = How::Rolling;
            case.allow_outage = true;
            Case { faults, starts, flush_time, ..case }
        },
    )
}

proptest! {
    #![proptest_config(always_the_same(48))]

    #[test] // proves RESTART-63, RESTART-90, RESTART-91, RESTART-92
    fn a_node_whose_engine_ended_in_its_slot_is_not_waited_for_in_vain(case in deaths_in_a_slot()) {
        let (page, wrong) = case.play_with_templates();
        prop_assert!(wrong.is_empty(), "{}\n{page}", wrong.join("\n"));
    }
}

/// The name of a pod that holds a slot.
pub(super) fn holder(driver: &Driver) -> Option<String> {
    let mut under_way = driver.world.ledger().under_way();
    let uid = &under_way.next()?.pod_uid;
    let pod = driver.world.pods.iter().find(|pod| pod.uid == *uid && !pod.gone);
    pod.map(|pod| pod.name.clone())
}
