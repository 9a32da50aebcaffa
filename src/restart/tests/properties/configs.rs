//! Configs with a setting that all nodes need at once, and a policy that follows changed configs.

use proptest::prelude::*;

use super::super::scenario::play_line;
use super::{Case, FAULT_TIME, always_the_same, case, faults};

/// `v3` has another name for the cluster than all others.
const LINES: [&str; 4] = [
    "config v1 has cluster.name=logs",
    "config v2 has cluster.name=logs",
    "config v3 has cluster.name=other",
    "config v4 has cluster.name=logs",
];

impl Case {
    /// As [`Self::play`], without a request: the policy follows the configs, which change again and
    /// again.
    fn play_with_configs(&self, follows: &str) -> (String, Vec<String>) {
        let mut driver = self.driver();
        LINES.iter().for_each(|line| play_line(&mut driver, line));
        play_line(&mut driver, &format!("policy onConfigChange {follows}"));
        // What the engines run on is seen once.
        play_line(&mut driver, "run 5s");
        self.run_with_faults(&mut driver)
    }
}

fn configs() -> impl Strategy<Value = (Case, &'static str)> {
    let follows = prop_oneof![3 => Just("auto"), 2 => Just("rolling"), 1 => Just("coordinated")];
    (case(), faults::configs(FAULT_TIME), follows)
        .prop_map(|(case, faults, follows)| (Case { faults, ..case }, follows))
}

proptest! {
    #![proptest_config(always_the_same(32))]

    #[test] // proves UPDATE-72
    fn no_two_configs_that_need_all_nodes_are_mixed_and_every_restart_ends(
        (case, follows) in configs()
    ) {
        let (page, wrong) = case.play_with_configs(follows);
        prop_assert!(wrong.is_empty(), "{}\n{page}", wrong.join("\n"));
    }
}
