//! Amounts in different words.

use crate::resources::thousandths;

#[test] // proves UPDATE-58
fn one_amount_has_one_value() {
    for (text, expected) in [
        ("1", Some(1000)),
        ("1000m", Some(1000)),
        ("0.5", Some(500)),
        (".5", Some(500)),
        ("500m", Some(500)),
        ("1e3", Some(1_000_000)),
        ("1E3", Some(1_000_000)),
        ("5e-1", Some(500)),
        ("1k", Some(1_000_000)),
        ("1Ki", Some(1_024_000)),
        ("1.5Gi", Some(1_610_612_736_000)),
        ("1536Mi", Some(1_610_612_736_000)),
        ("2E", Some(2_000_000_000_000_000_000_000)),
        ("1n", Some(1)),
        ("-1", Some(-1000)),
        ("+1", Some(1000)),
        ("", None),
        (".", None),
        ("1 Gi", None),
        ("1KB", None),
        ("1e99", None),
        ("Gi", None),
        ("1.1.1", None),
        ("99999999999999999999999999999999999999999", None),
    ] {
        assert_eq!(thousandths(text), expected, "{text:?}");
    }
}
