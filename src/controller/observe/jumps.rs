//! Notices that the wall clock has jumped forward: a time server has set it, or a machine was suspended. Deadlines
//! are in the ledger by the wall clock, since the next leader has to read them.

use stayput_restart::Time;
use tokio::time::Instant;

/// Minimum length of a jump, in milliseconds: between two looks clocks are slewed by less.
const LEAST: u64 = 10_000;

/// State of both clocks at the last look.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    last: Option<(Time, Instant)>,
    /// Jumps of the wall clock that the ledger does not have yet, in milliseconds.
    pending: u64,
}

impl Jumps {
    /// Compares both clocks. Returns the jumps that the ledger does not have yet, in milliseconds.
    pub(super) fn look(&mut self, now: Time, steady: Instant) -> u64 {
        if let Some((before, then)) = self.last {
            let passed = u64::try_from((steady - then).as_millis()).unwrap_or(u64::MAX);
            let jumped = now.since(before).saturating_sub(passed);
            if jumped >= LEAST {
                tracing::warn!("the clock has jumped forward by {} s", jumped / 1000);
                self.pending += jumped;
            }
        }
        self.last = Some((now, steady));
        self.pending
    }

    /// Forgets the pending jumps: the ledger has them, or has no times.
    pub(crate) fn settle(&mut self) {
        self.pending = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
}
