//! Difference between a manager's clock and ours.

use stayput_http::jwt::LEEWAY;
use stayput_restart::Time;

/// Minimum lead of the manager's clock over ours, in seconds; negative if it is behind, zero if the two may
/// be the same. `date` is its time, in seconds, from an answer between `asked` and `answered`.
pub(super) fn ahead(date: Option<u64>, asked: Time, answered: Time) -> i64 {
    let Some(date) = date else { return 0 };
    // The date has no fractions of a second.
    let (least, most) =
        (Time(date.saturating_mul(1000)), Time(date.saturating_mul(1000)).plus(999));
    let seconds = |milliseconds: u64| i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    seconds(least.since(answered)) - seconds(asked.since(most))
}

/// A time of a status by the manager's time of day. The status is by a clock that began with that and never
/// jumps; `ahead` is its lead over the time of day, in milliseconds, once that was set.
pub(super) fn by_time_of_day(told: Time, ahead: i64) -> Time {
    Time(told.0.saturating_add_signed(ahead.saturating_neg()))
}

/// Text to add to the reason of a refusal; empty if the difference is too small for tokens to be refused.
pub(super) fn cause(ahead: i64) -> String {
    if ahead.unsigned_abs() < LEEWAY {
        return String::new();
    }
    let (seconds, direction) =
        (ahead.unsigned_abs(), if ahead > 0 { "ahead of" } else { "behind" });
    format!("; its clock is {seconds} s {direction} the reconciler's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves DOCTOR-4
    fn only_what_is_certain_is_a_difference() {
        let (asked, answered) = (Time(100_200), Time(101_700));
        let ahead = |date| ahead(Some(date), asked, answered);
        assert_eq!([100, 101, 102].map(ahead), [0, 0, 0]);
        assert_eq!([131, 132, 70, 69].map(ahead), [29, 30, -29, -30]);
        assert_eq!(super::ahead(None, asked, answered), 0);
        assert!(ahead(u64::MAX) > 30);
    }

    #[test]
    fn a_time_of_before_the_clock_was_set_is_corrected() {
        let hour = 3_600_000;
        assert_eq!(by_time_of_day(Time(2 * 3_600_000), hour), Time(3_600_000));
        assert_eq!(by_time_of_day(Time(3_600_000), -hour), Time(2 * 3_600_000));
        assert_eq!(by_time_of_day(Time(1), i64::MIN), Time(1 + i64::MAX.cast_unsigned()));
    }

    #[test] // proves DOCTOR-4
    fn a_refusal_is_explained_if_the_clock_can_be_its_cause() {
        assert_eq!(cause(29), "");
        assert_eq!(cause(30), "; its clock is 30 s ahead of the reconciler's");
        assert_eq!(cause(-95), "; its clock is 95 s behind the reconciler's");
    }
}
