//! Tests of `configs.rs`.

use super::*;

fn named(name: &str) -> Settings {
    Settings::from([("cluster.name".to_owned(), name.to_owned())])
}

#[test]
fn configs_with_the_same_settings_take_one_place_and_others_have_their_own() {
    let mut known = KnownConfigs::default();
    let checksum = |digit: &str| format!("sha256:{}", digit.repeat(64));
    for digit in ["a", "b", "a"] {
        known.add(&checksum(digit), &named("logs"));
    }
    assert!(known.are_alike(&KnownConfigs::default()));
    known.add(&checksum("c"), &named("other"));
    assert!(!known.are_alike(&KnownConfigs::default()));
    assert_eq!((known.0.len(), known.count()), (2, 3));
    assert_eq!(known.of(&checksum("b")), Some(&named("logs")));
    assert_eq!(known.of(&checksum("c")), Some(&named("other")));
    assert_eq!(known.of(&checksum("d")), None);
    let renewed = known.renewed(&KnownConfigs::default(), |one| one.starts_with('c'));
    assert_eq!((renewed.of(&checksum("a")), renewed.count()), (None, 1));
    let text = serde_json::to_string(&known).unwrap();
    assert_eq!(serde_json::from_str::<KnownConfigs>(&text).unwrap(), known);
}

#[test]
fn they_take_no_more_room_than_the_ledger_has() {
    let mut known = KnownConfigs::default();
    for number in 0..2 * MAX_CONFIGS {
        known.add(&format!("sha256:{number:016x}"), &named("logs"));
    }
    assert_eq!(known.count(), MAX_CONFIGS);
    assert!(serde_json::to_string(&known).unwrap().len() < 32 * MAX_CONFIGS);
}
