//! Delays before the API retries a failed action: short after the first fault, then longer and longer.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
/// The longest time to the next attempt.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// The time to the next attempt after this many that failed in a row. It doubles.
pub(super) fn delay_after(failures: u32) -> Duration {
    (FIRST * 2_u32.pow(failures.saturating_sub(1).min(5))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_limit() {
        let seconds = |failures| delay_after(failures).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 7, u32::MAX].map(seconds), [1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
