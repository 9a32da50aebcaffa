//! Pauses between attempts.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Pause after this number of failures in a row: half a second, doubled each time, 30 s at most.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST.saturating_mul(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_half_a_minute() {
        let seconds: Vec<f32> = (1..=9).map(|failures| pause(failures).as_secs_f32()).collect();
        assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(pause(u32::MAX), LONGEST);
        assert_eq!(pause(0), FIRST);
    }
}
