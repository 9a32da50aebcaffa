//! The format of the request on the SearchCluster.

use proptest::prelude::*;

use crate::{Predicate, Request, Strategy, Target, Time};
use stayput_api::Span;

#[test]
fn an_id_is_all_it_takes() {
    let request = Request::parse(r#"{"id":"a"}"#).expect("a request");
    assert_eq!(request, Request { id: "a".to_owned(), ..Request::default() });
    assert_eq!(request.strategy, Strategy::Rolling);
    assert_eq!(request.target, Target::default());
}

#[test]
fn every_field_is_read() {
    let text = r#"{"id":"2026-11-21.a_B","strategy":"coordinated",
        "target":{"nodes":["logs-1","logs-0"],"role":"data_hot","zone":"z1"},
        "notBefore":"2026-11-21T03:00:00Z","deadline":"1h 30m",
        "allowUnreplicated":["scratch-*","kept"],"allowOutage":true,"outsideWindows":true,
        "skipRules":["one_master_at_a_time"],"by":"alice"}"#;
    let request = Request {
        id: "2026-11-21.a_B".to_owned(),
        strategy: Strategy::Coordinated,
        target: Target {
            nodes: vec!["logs-1".to_owned(), "logs-0".to_owned()],
            role: Some("data_hot".to_owned()),
            zone: Some("z1".to_owned()),
        },
        not_before: Some(Time(1_795_230_000_000)),
        deadline: Some(Span(90 * 60 * 1000)),
        allow_unreplicated: vec!["scratch-*".to_owned(), "kept".to_owned()],
        allow_outage: true,
        outside_windows: true,
        skip_rules: vec!["one_master_at_a_time".to_owned()],
        by: Some("alice".to_owned()),
    };
    assert_eq!(Request::parse(text).expect("a request"), request);
}

#[test]
fn what_cannot_be_understood_is_refused_in_a_sentence() {
    for (what, text, words) in [
        ("no JSON", "rolling", "write for example"),
        ("nothing", "", "write for example"),
        ("no object", "\"a\"", "write for example"),
        ("no id", "{}", "id"),
        ("two objects", r#"{"id":"a"} {"id":"b"}"#, "trailing"),
        ("the same field twice", r#"{"id":"a","id":"b"}"#, "duplicate field"),
        ("no pattern", r#"{"id":"a","allowUnreplicated":[""]}"#, "is not a pattern"),
        ("a bad pattern", r#"{"id":"a","allowUnreplicated":["a***"]}"#, "such as \"logs-*\""),
        ("consent to everything by mistake", r#"{"id":"a","allowUnreplicated":true}"#, "expected"),
        (
            "consent to an outage by a word",
            r#"{"id":"a","allowOutage":"true"}"#,
            "expected a boolean",
        ),
        ("consent to an outage by a number", r#"{"id":"a","allowOutage":1}"#, "expected a boolean"),
        ("consent to an outage, mistyped", r#"{"id":"a","allowoutage":true}"#, "allowoutage"),
        ("an id that is a number", r#"{"id":7}"#, "expected a string"),
        ("an empty id", r#"{"id":""}"#, "is not a valid restart id"),
        ("an id with a space", r#"{"id":"a b"}"#, "is not a valid restart id"),
        ("an id that ends a line", r#"{"id":"a\n"}"#, "is not a valid restart id"),
        ("an id with a letter beyond ASCII", r#"{"id":"ä"}"#, "letters, digits"),
        ("a typo in a field", r#"{"id":"a","stragety":"rolling"}"#, "stragety"),
        ("a typo in the id", r#"{"Id":"a"}"#, "unknown field `Id`"),
        ("a list of the fields", r#"["a","rolling",{"node":["b"]}]"#, "expected a map"),
        ("a list for the target", r#"{"id":"a","target":[["b"]]}"#, "expected a map"),
        ("a typo in the target", r#"{"id":"a","target":{"node":["b"]}}"#, "nodes"),
        ("a strategy of another tool", r#"{"id":"a","strategy":"simple"}"#, "coordinated"),
        ("a phase for a strategy", r#"{"id":"a","strategy":"schedule"}"#, "immediate"),
        ("no strategy after all", r#"{"id":"a","strategy":null}"#, "expected value"),
        ("no moment", r#"{"id":"a","notBefore":"tomorrow"}"#, "tomorrow"),
        ("a moment without a zone", r#"{"id":"a","notBefore":"2026-11-21 03:00"}"#, "RFC 3339"),
        ("no span", r#"{"id":"a","deadline":"soon"}"#, "soon"),
        ("a negative span", r#"{"id":"a","deadline":"-60"}"#, "-60"),
        ("a span beyond a day", r#"{"id":"a","deadline":"25h"}"#, "longer than a day"),
    ] {
        let error = Request::parse(text).expect_err(what).to_string();
        assert!(error.contains(words), "{what}: {error}");
    }
}

#[test]
fn an_id_has_at_most_63_characters() {
    let parse = |length| Request::parse(&format!(r#"{{"id":"{}"}}"#, "a".repeat(length)));
    assert!(parse(63).is_ok());
    assert!(parse(64).expect_err("too long").to_string().contains("1 to 63"));
}

#[test]
fn what_is_left_out_is_not_written() {
    let request = Request { id: "a".to_owned(), ..Request::default() };
    let written = serde_json::to_string(&request).expect("JSON");
    assert_eq!(written, r#"{"id":"a","strategy":"rolling","target":{}}"#);
}

/// Names of rules that a request may skip.
const NAMES: [&str; 2] = [Predicate::Yellow.name(), Predicate::RunningSnapshot.name()];

#[test] // proves UPDATE-37
fn a_rule_is_skipped_by_its_name_and_what_protects_data_never() {
    let parse = |name: &str| Request::parse(&format!(r#"{{"id":"a","skipRules":["{name}"]}}"#));
    for predicate in Predicate::ALL {
        assert!(parse(predicate.name()).is_ok(), "{predicate:?}");
    }
    for (name, words) in [
        (
            "quorum",
            "\"quorum\" in skipRules cannot be skipped: only allowOutage (in one request, --allow-outage;",
        ),
        ("unreplicated_index", "--allow-unreplicated"),
        ("*", "is not a rule"),
        ("", "is not a rule"),
        ("paused", "is not a rule"),
        ("one_master_at_time", "the nearest name is one_master_at_a_time; the names are"),
    ] {
        let error = parse(name).expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let error = parse("snapshots").expect_err("no rule").to_string();
    assert!(Predicate::ALL.iter().all(|one| error.contains(one.name())), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        id in "[A-Za-z0-9._-]{1,63}",
        strategy in prop::sample::select(vec![Strategy::Immediate, Strategy::Rolling, Strategy::Coordinated]),
        nodes in prop::collection::vec("[a-z0-9-]{1,20}", 0..4),
        role in prop::option::of("[a-z_]{1,12}"),
        zone in prop::option::of(any::<String>()),
        not_before in prop::option::of(0..253_402_300_800_000_u64),
        deadline in prop::option::of(0..=Span::MAX.0),
        allow_outage in any::<bool>(),
        outside_windows in any::<bool>(),
        skip_rules in prop::sample::subsequence(&NAMES[..], 0..=NAMES.len()),
        by in prop::option::of(any::<String>()),
    ) {
        let target = Target { nodes, role, zone };
        let skip_rules = skip_rules.into_iter().map(str::to_owned).collect();
        let not_before = not_before.map(Time);
        let (deadline, allow_unreplicated) = (deadline.map(Span), Vec::new());
        let request = Request {
            id,
            strategy,
            target,
            not_before,
            deadline,
            allow_unreplicated,
            allow_outage,
            outside_windows,
            skip_rules,
            by,
        };
        let written = serde_json::to_string(&request).expect("JSON");
        prop_assert_eq!(Request::parse(&written).expect("a request"), request);
    }
}

#[test]
fn the_ledger_of_a_newer_version_can_be_read_although_nobody_may_write_so() {
    let text = r#"{"id":"a","newer":1,"target":{"nodes":["logs-0"],"rack":"r1"}}"#;
    let stored: Request = serde_json::from_str(text).expect("it is read");
    assert_eq!((stored.id.as_str(), stored.target.nodes.len()), ("a", 1));
    assert!(Request::parse(text).expect_err("it is refused").to_string().contains("newer"));
    let narrow = r#"{"id":"a","target":{"rack":"r1"}}"#;
    assert!(Request::parse(narrow).expect_err("it is refused").to_string().contains("rack"));
}
