//! Which keys managers are to have.

use serde_json::{Value, json};

use super::{HOUR, START};
use crate::Existing;
use crate::key_set::{Decision, KeySet, KeySetError, KeySetFacts, Unpublished, decide};

fn set(keys: &[&str]) -> KeySet {
    let keys: Vec<Value> = keys.iter().map(|key| json!({"kid": key, "kty": "EC"})).collect();
    KeySet::read("https://issuer", &json!({ "keys": keys }).to_string()).unwrap()
}

fn facts(published: &[&str], held: &[&str]) -> KeySetFacts {
    KeySetFacts {
        namespace: "search".into(),
        cluster: "logs".into(),
        now: START,
        published: Ok(set(published)),
        held: Some(Existing { is_ours: true, content: Ok(set(held)) }),
        unpublished: Unpublished::default(),
    }
}

#[test]
fn nothing_is_written_when_all_is_good() {
    let good = decide(&facts(&["a", "b"], &["b", "a"]));
    let nothing = Decision { write: None, unpublished: Unpublished::default(), problem: None };
    assert_eq!(good, nothing);
}

#[test]
fn a_new_key_is_taken_at_once_and_an_old_one_is_dropped_later() {
    let first = decide(&facts(&["b"], &["a"]));
    assert_eq!(first.write, Some(set(&["b", "a"])));
    let later = |seconds: u64| {
        let mut facts = facts(&["b"], &["b", "a"]);
        (facts.now, facts.unpublished) = (START + seconds, first.unpublished.clone());
        decide(&facts).write
    };
    assert_eq!(later(HOUR - 1), None);
    assert_eq!(later(HOUR), Some(set(&["b"])));
}

#[test] // proves RESTART-8
fn apiservers_that_differ_for_a_while_lose_no_key() {
    let mut unpublished = Unpublished::default();
    for minute in 0..600 {
        let published: &[&str] = if minute % 30 == 0 { &["a", "b"] } else { &["a"] };
        let mut facts = facts(published, &["a", "b"]);
        (facts.now, facts.unpublished) = (START + minute * 60, unpublished);
        let decision = decide(&facts);
        assert_eq!(decision.write, None, "minute {minute}");
        unpublished = decision.unpublished;
    }
}

#[test] // proves RESTART-8
fn without_an_answer_nothing_is_changed() {
    let mut unknown = facts(&["a"], &["a"]);
    unknown.published = Err("it did not answer".into());
    let decision = decide(&unknown);
    assert_eq!(decision.write, None);
    assert_eq!(decision.problem.unwrap().reason(), "KeysUnknown");
    assert_eq!(KeySet::read("issuer", r#"{"keys":[]}"#), Err(KeySetError::Empty));
    assert_eq!(KeySet::read("issuer", "<html>"), Err(KeySetError::NotKeySet));
}

#[test]
fn what_is_absent_or_broken_is_written_and_another_issuer_too() {
    let mut absent = facts(&["a"], &["a"]);
    absent.held = None;
    assert_eq!(decide(&absent).write, Some(set(&["a"])));
    absent.held = Some(Existing { is_ours: true, content: Err("broken".into()) });
    assert_eq!(decide(&absent).write, Some(set(&["a"])));
    let mut moved = facts(&["a"], &["a"]);
    moved.published = Ok(KeySet::read("https://other", &set(&["a"]).text()).unwrap());
    assert_eq!(decide(&moved).write.unwrap().issuer, "https://other");
}

#[test]
fn a_copy_of_somebody_else_is_only_watched() {
    let foreign = |published: &[&str]| {
        let mut facts = facts(published, &["a"]);
        facts.held.as_mut().unwrap().is_ours = false;
        decide(&facts)
    };
    assert_eq!(foreign(&["a"]).problem, None);
    let old = foreign(&["a", "b"]);
    assert_eq!((old.write, old.problem.unwrap().reason()), (None, "KeysOld"));
}
