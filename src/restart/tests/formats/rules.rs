//! The rules and codes in `docs/rules.md` are those of the code.

use crate::{Code, Predicate, annotation};

const DOCUMENT: &str = include_str!("../../../../docs/rules.md");

/// The words that a source writes in an arm of a `match`: its `=> "word",`.
fn words(source: &'static str) -> Vec<&'static str> {
    let arms = source.split("=> ").skip(1);
    // A long word stands in braces, on a line of its own.
    let words = arms.map(|arm| arm.trim_start_matches(['{', ' ', '\n']));
    let words: Vec<&str> =
        words.filter_map(|word| word.strip_prefix('"')?.split('"').next()).collect();
    assert!(words.len() > 15, "{words:?}");
    words
}

fn is_in_it(word: &str) -> bool {
    DOCUMENT.contains(&format!("`{word}`"))
}

#[test]
fn the_ten_stand_there_in_the_order_in_which_they_are_asked() {
    let (_, table) = DOCUMENT.split_once("\n## The predicates\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter_map(|(number, rest)| Some((number, rest.split('`').nth(1)?)));
    let expected: Vec<(String, &str)> =
        Predicate::ALL.iter().zip(1..).map(|(one, at)| (format!("{at}"), one.name())).collect();
    let found: Vec<(String, &str)> = rows.map(|(number, name)| (number.to_owned(), name)).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_of_the_ten_is_a_function_of_its_name() {
    let source = include_str!("../../rules/predicates.rs");
    for predicate in Predicate::ALL {
        let name = predicate.name().replace("MaxUnavailable", "max_unavailable");
        assert!(source.contains(&format!("fn {name}(")), "{name}");
    }
}

#[test]
fn every_word_for_programs_and_every_event_is_in_it() {
    for word in words(include_str!("../../code.rs")) {
        assert!(is_in_it(word), "{word} of src/restart/code.rs is missing in docs/rules.md");
    }
    for word in words(include_str!("../../plan.rs")) {
        assert!(is_in_it(word), "{word} of src/restart/plan.rs is missing in docs/rules.md");
    }
}

#[test]
fn rules_besides_the_ten_have_a_chapter() {
    for code in [Code::Quorum, Code::UnreplicatedIndex] {
        assert!(DOCUMENT.contains(&format!("\n## `{}`: ", code.as_str())), "{code:?}");
    }
}

#[test]
fn the_way_to_do_without_is_the_one_that_is_read() {
    let command = format!("{}={}", annotation::DISABLE, Predicate::GreenOrYellow.name());
    assert!(DOCUMENT.contains(&command));
    assert!(DOCUMENT.contains(&format!("logs {}-\n", annotation::DISABLE)));
}

/// Kubernetes wants the reason of a condition to look like this.
#[test]
fn every_word_can_be_the_reason_of_a_condition() {
    let published = Predicate::ALL.map(Predicate::name);
    for word in words(include_str!("../../code.rs")).into_iter().chain(published) {
        let begins = word.starts_with(|c: char| c.is_ascii_alphabetic());
        let ends = word.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = word.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c));
        assert!(begins && ends && rest && word.len() <= 1024, "{word}");
    }
}
