//! How many may be down.

use super::{code, sentence};
use crate::restart::Code;
use crate::restart::gates::slots;

#[test]
fn one_more_may_go_down_while_fewer_than_allowed_are() {
    for (down, max, passes) in
        [(0, 1, true), (1, 1, false), (1, 2, true), (2, 2, false), (5, 2, false), (0, 0, false)]
    {
        let expected = if passes { None } else { Some(Code::MaxUnavailable) };
        assert_eq!(code(&slots(down, max)), expected, "{down} down of {max}");
    }
}

#[test]
fn the_sentence_names_both_numbers_and_the_field() {
    let told = sentence(slots(2, 1));
    assert!(told.starts_with("2 nodes are"), "{told}");
    assert!(told.contains("spec.restart.maxUnavailable is 1"), "{told}");
}
