use crate::clusters::*;

#[test]
fn numbers_grow_and_anything_else_is_another_version() {
    assert!(is_later("10", "9") && !is_later("9", "10") && !is_later("9", "9"));
    assert!(is_later("b", "a") && is_later("a", "b") && !is_later("a", "a"));
}
