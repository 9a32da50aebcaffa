use std::time::Duration;

use crate::observe::snapshot::*;

#[test] // proves RESTART-27
fn a_jump_is_known_until_the_ledger_has_it() {
    let begin = Instant::now();
    let at = |seconds: u64| begin + Duration::from_secs(seconds);
    let mut jumps = Jumps::default();
    assert_eq!(jumps.look(Time(1_000_000), at(0)), 0);
    assert_eq!(jumps.look(Time(1_060_500), at(60)), 0, "clocks differ by a little");
    assert_eq!(jumps.look(Time(2_261_000), at(61)), 1_199_500);
    assert_eq!(jumps.look(Time(2_262_000), at(62)), 1_199_500, "it is not written yet");
    jumps.settle();
    assert_eq!(jumps.look(Time(2_263_000), at(63)), 0);
    assert_eq!(jumps.look(Time(1_000_000), at(64)), 0, "it was set back");
}
