use crate::observe::managers::*;

#[test] // proves DOCTOR-4
fn only_what_is_certain_is_a_difference() {
    let (asked, answered) = (Time(100_200), Time(101_700));
    let ahead = |date| ahead(Some(date), asked, answered);
    assert_eq!([100, 101, 102].map(ahead), [0, 0, 0]);
    assert_eq!([131, 132, 70, 69].map(ahead), [29, 30, -29, -30]);
    assert_eq!(crate::observe::managers::ahead(None, asked, answered), 0);
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
