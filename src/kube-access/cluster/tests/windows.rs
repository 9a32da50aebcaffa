//! When nodes may be stopped.

use stayput_restart::Time;

use crate::cluster::restart::{Day, WindowSpec, Windows};

fn window(days: &[Day], start: &str, duration: &str, zone: &str) -> WindowSpec {
    WindowSpec {
        days: days.to_vec(),
        start: start.into(),
        duration: duration.into(),
        time_zone: zone.into(),
    }
}

fn windows(all: &[WindowSpec]) -> Windows {
    let mut valid = Windows::default();
    for written in all {
        valid.add(written).expect("a window");
    }
    valid
}

/// When the next one opens, seen then; `open` if one is open.
fn seen(windows: &Windows, now: &str) -> String {
    let until = windows.closed_until(Time::parse(now).expect("a time"));
    until.map_or("open".into(), |time| time.to_string().replace(".000Z", "Z"))
}

#[test]
fn without_windows_it_is_always_open() {
    assert_eq!(seen(&Windows::default(), "2026-11-23T12:00:00Z"), "open");
}

#[test]
fn it_is_open_from_its_start_until_its_end() {
    let nightly = windows(&[window(&[], "22:00", "6h", "UTC")]);
    for (now, expected) in [
        ("2026-11-23T21:59:59Z", "2026-11-23T22:00:00Z"),
        ("2026-11-23T22:00:00Z", "open"),
        ("2026-11-24T03:59:59Z", "open"),
        ("2026-11-24T04:00:00Z", "2026-11-24T22:00:00Z"),
    ] {
        assert_eq!(seen(&nightly, now), expected, "{now}");
    }
}

#[test]
fn a_day_is_that_on_which_it_opens() {
    // 2026-11-23 is a Monday.
    let weekend = windows(&[window(&[Day::Sun], "23:00", "2h", "UTC")]);
    for (now, expected) in [
        ("2026-11-23T00:30:00Z", "open"),
        ("2026-11-23T01:00:00Z", "2026-11-29T23:00:00Z"),
        ("2026-11-22T22:00:00Z", "2026-11-22T23:00:00Z"),
    ] {
        assert_eq!(seen(&weekend, now), expected, "{now}");
    }
}

#[test] // proves UPDATE-53
fn the_time_is_that_of_its_zone_in_summer_and_in_winter() {
    let berlin = windows(&[window(&[], "02:30", "1h", "Europe/Berlin")]);
    for (now, expected) in [
        ("2026-07-01T00:00:00Z", "2026-07-01T00:30:00Z"),
        ("2026-11-23T00:00:00Z", "2026-11-23T01:30:00Z"),
        // Clocks are put forward at 02:00: there is no 02:30.
        ("2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"),
        // Clocks are put back at 03:00: 02:30 comes twice, the window once.
        ("2026-10-25T00:30:00Z", "open"),
        ("2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"),
    ] {
        assert_eq!(seen(&berlin, now), expected, "{now}");
    }
}

#[test]
fn of_several_windows_one_is_enough() {
    let two = windows(&[
        window(&[Day::Sat], "00:00", "24h", "UTC"),
        window(&[Day::Wed], "02:00", "30m", "UTC"),
    ]);
    for (now, expected) in [
        ("2026-11-23T12:00:00Z", "2026-11-25T02:00:00Z"),
        ("2026-11-25T02:29:59Z", "open"),
        ("2026-11-25T02:30:00Z", "2026-11-28T00:00:00Z"),
        ("2026-11-28T23:59:59Z", "open"),
    ] {
        assert_eq!(seen(&two, now), expected, "{now}");
    }
}

#[test]
fn what_is_no_window_says_what_to_write() {
    for (written, field, says) in [
        (window(&[], "25:00", "1h", "UTC"), "start", "write one such as \"22:00\""),
        (window(&[], "22", "1h", "UTC"), "start", "is no time of day"),
        (window(&[], "22:00", "0s", "UTC"), "duration", "is nothing"),
        (window(&[], "22:00", "25h", "UTC"), "duration", "longer than a day"),
        (window(&[], "22:00", "long", "UTC"), "duration", "\"long\""),
        (window(&[], "22:00", "1h", "Europe/Berln"), "timeZone", "a name of the IANA database"),
    ] {
        let invalid = Windows::default().add(&written).expect_err("it is invalid");
        assert_eq!(invalid.field, field, "{written:?}");
        assert!(invalid.problem.contains(says), "{}", invalid.problem);
    }
}
