//! Tests of `policy.rs`.

mod disabled;

use super::*;

#[test]
fn what_is_written_is_read_and_what_is_not_a_share_says_what_to_write() {
    for share in [Share::Percent(1), Share::Percent(25), Share::Percent(100)] {
        assert_eq!(Share::percent(&share.to_string()), Ok(share));
    }
    for (text, says) in [
        ("0%", "is 0%, so that no node could ever be restarted: write 1% or more"),
        ("00%", "is 00%, so that no node"),
        ("2", "\"2\" is neither"),
        ("999999999999%", "\"999999999999%\" is neither"),
        ("101%", "\"101%\" is neither"),
        ("300%", "\"300%\" is neither"),
        ("-1%", "\"-1%\" is neither"),
        ("+1%", "\"+1%\" is neither"),
        ("1.5%", "\"1.5%\" is neither"),
        ("25 %", "\"25 %\" is neither"),
        ("25%%", "\"25%%\" is neither"),
        ("%", "\"%\" is neither"),
        ("", "\"\" is neither"),
        ("all", "\"all\" is neither"),
    ] {
        let problem = Share::percent(text).unwrap_err().to_string();
        assert!(problem.starts_with(says) && problem.contains("write "), "{text}: {problem}");
    }
    assert!(Share::nodes(0).unwrap_err().to_string().starts_with("is 0, so that no node"));
    assert!(Share::nodes(-3).unwrap_err().to_string().starts_with("is -3, which is not a number"));
}

#[test]
fn a_part_is_rounded_down_but_never_to_none() {
    let of = |percent, total| Share::Percent(percent).of(total);
    assert_eq!([of(25, 4), of(25, 7), of(25, 8), of(100, 7)], [1, 1, 2, 7]);
    assert_eq!([of(1, 3), of(10, 9), of(99, 1), of(50, 0)], [1, 1, 1, 1]);
    assert_eq!(Share::Nodes(3).of(2), 3);
}
