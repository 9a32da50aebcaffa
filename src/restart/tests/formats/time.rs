//! Times as text.

use proptest::prelude::*;

use crate::Time;

/// The last millisecond of the year 9999.
const LAST: u64 = 253_402_300_799_999;

#[test]
fn a_moment_is_read_in_utc_and_with_an_offset() {
    for (text, milliseconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("2026-11-21T03:00:00Z", 1_795_230_000_000),
        ("2026-11-21T03:00:00.250Z", 1_795_230_000_250),
        ("2026-11-21T05:00:00+02:00", 1_795_230_000_000),
        ("2026-11-20T21:30:00.250-05:30", 1_795_230_000_250),
        ("2026-11-21T03:00:00+00:00", 1_795_230_000_000),
        ("2028-02-29T23:59:59.999Z", 1_835_481_599_999),
        ("9999-12-31T23:59:59.999Z", LAST),
    ] {
        assert_eq!(Time::parse(text), Ok(Time(milliseconds)), "{text}");
    }
}

#[test]
fn anything_else_is_refused_with_an_example() {
    for text in [
        "",
        "now",
        "2026-11-21",
        "2026-11-21T03:00:00",
        "2026-11-21 03:00:00Z ",
        "2026-11-21T03:00:00+24:00",
        "2026-11-21T03:00:00+01:60",
        "2026-11-21T03:00:00+0100",
        "2026-11-21T03:00:00+01",
        "2026-11-21T03:00:00Z+01:00",
        "2026-11-21T03:00:00+-1:00",
        "2026-11-21-03:00",
        "1970-01-01T00:00:00+01:00",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "1969-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
    ] {
        let error = Time::parse(text).expect_err(text).to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
        assert!(error.contains("2026-11-21T03:00:00Z"), "{error}");
    }
}

#[test]
fn a_clock_that_is_far_off_is_still_printed() {
    assert_eq!(Time(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000Z");
}

#[test]
fn differences_never_overflow() {
    assert_eq!(Time(5).since(Time(3)), 2);
    assert_eq!(Time(3).since(Time(5)), 0, "a clock that was set back");
    assert_eq!(Time(3).plus(2), Time(5));
    assert_eq!(Time(u64::MAX - 1).plus(2), Time(u64::MAX));
}

#[test]
fn in_json_it_is_text() {
    let written = serde_json::to_string(&Time(1_795_230_000_000)).expect("JSON");
    assert_eq!(written, r#""2026-11-21T03:00:00.000Z""#);
    assert!(serde_json::from_str::<Time>("1795230000000").is_err(), "no number");
    let error = serde_json::from_str::<Time>(r#""noon""#).expect_err("no moment").to_string();
    assert!(error.contains("noon"), "{error}");
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(milliseconds in 0..=LAST) {
        let time = Time(milliseconds);
        prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        let written = serde_json::to_string(&time).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Time>(&written).expect("a moment"), time);
    }

    /// Moments in the order of time are in the order of text, too.
    #[test]
    fn text_sorts_as_time_does(one in 0..=LAST, other in 0..=LAST) {
        prop_assert_eq!(
            Time(one).cmp(&Time(other)),
            Time(one).to_string().cmp(&Time(other).to_string())
        );
    }
}
