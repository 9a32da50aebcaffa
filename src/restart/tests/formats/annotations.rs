//! The annotations are read and written as `proto/annotations.md` describes.

use crate::{LastRestart, Outcome, Phase, Request, Strategy, annotation};

const DOCUMENT: &str = include_str!("../../../../proto/annotations.md");

/// Written into manifests by `kubectl stayput inject`; no plan reads it.
const INJECTED: &str = "stayput.dev/injected";

/// The JSON samples with this word beside the language.
fn samples(kind: &str) -> Vec<&'static str> {
    let start = format!("```json {kind}\n");
    DOCUMENT.split(&start).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

#[test]
fn every_key_phase_strategy_and_outcome_is_in_it() {
    let keys = annotation::ALL.into_iter().chain([annotation::FINALIZER]);
    let phases = Phase::ALL.into_iter().map(Phase::as_str);
    let strategies = [Strategy::Immediate, Strategy::Rolling, Strategy::Coordinated];
    let strategies = strategies.into_iter().map(Strategy::as_str);
    let outcomes = Outcome::ALL.into_iter().map(Outcome::as_str);
    for word in keys.chain(phases).chain(strategies).chain(outcomes) {
        assert!(DOCUMENT.contains(&format!("`{word}`")), "{word} is missing");
    }
    for gate in [annotation::GATE, annotation::GATE_AFTER] {
        assert!(DOCUMENT.contains(&format!("| `{gate}NAME` |")));
    }
}

#[test]
fn no_key_in_it_is_unknown_to_us() {
    let keys: Vec<&str> = DOCUMENT
        .split('`')
        .filter(|code| code.starts_with("stayput.dev/") || code.contains(".elastic.co/"))
        .collect();
    assert!(keys.len() > annotation::ALL.len(), "{keys:?}");
    for key in keys {
        let is_known = annotation::ALL.contains(&key);
        assert!(is_known || [annotation::FINALIZER, INJECTED].contains(&key), "{key}");
    }
}

#[test]
fn its_samples_are_read_with_every_field() {
    let requests = samples("request");
    let [text] = requests[..] else { panic!("{requests:?}") };
    let request = Request::parse(text).expect("the sample");
    assert_eq!(request.target.nodes.len(), 2);
    assert!(request.target.role.is_some() && request.target.zone.is_some());
    assert!(request.not_before.is_some() && request.deadline.is_some() && request.by.is_some());

    let endings = samples("last-restart");
    let [text] = endings[..] else { panic!("{endings:?}") };
    let last: LastRestart = serde_json::from_str(text).expect("the sample");
    assert_eq!((last.outcome, last.seconds), (Outcome::Done, 74));
    let written = serde_json::to_value(&last).expect("JSON");
    let sample: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(written, sample, "what we write is what it shows");
}
