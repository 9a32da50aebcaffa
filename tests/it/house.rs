//! Habits of writing that have gone from the product's code do not come back.

use std::collections::BTreeMap;

use crate::support::sources::{Source, product};

const COMMENTS: &str = "doc comments that do not stand alone";
const NONE_IF: &str = "\"none if\", which the type says";
const BOOL_ARMS: &str = "arms of a match on a bool";
const PRIVATE: &str = "pub(in …)";

/// How a doc comment begins that needs the line below it to be understood.
const OPENINGS: [&str; 9] =
    ["What", "Whether", "Its", "It", "The same", "Those", "None if", "Which", "As ["];

/// The lines with each of these things, as `path:line`.
fn found(sources: &[Source]) -> BTreeMap<&'static str, Vec<String>> {
    let kinds = [COMMENTS, NONE_IF, BOOL_ARMS, PRIVATE];
    let mut found: BTreeMap<_, Vec<String>> = kinds.map(|kind| (kind, Vec::new())).into();
    for source in sources {
        let mut is_doc = false;
        for (line, number) in source.text.lines().zip(1..) {
            let doc = ["///", "//!"].iter().find_map(|mark| line.trim_start().strip_prefix(mark));
            let begins = doc.filter(|_| !is_doc).map(str::trim_start);
            is_doc = doc.is_some();
            let is_arm = ["true", "false"].iter().any(|word| {
                let rest = line.trim_start().strip_prefix(word);
                rest.is_some_and(|rest| rest.starts_with(" =>") || rest.starts_with(" if "))
            });
            let kinds = [
                (COMMENTS, begins.is_some_and(does_not_stand_alone)),
                (NONE_IF, comment(line).contains("none if ")),
                (BOOL_ARMS, is_arm),
                (PRIVATE, line.contains("pub(in ")),
            ];
            for (kind, _) in kinds.iter().filter(|(_, is_so)| *is_so) {
                let at = format!("{}:{number}", source.path);
                found.entry(kind).or_default().push(at);
            }
        }
    }
    found
}

/// The comment of a line in small letters, empty if the line has no comment.
fn comment(line: &str) -> String {
    line.split_once("//").map(|(_, comment)| comment.to_lowercase()).unwrap_or_default()
}

fn does_not_stand_alone(comment: &str) -> bool {
    OPENINGS.iter().any(|opening| {
        let rest = comment.strip_prefix(opening);
        rest.is_some_and(|rest| opening.ends_with('[') || rest.starts_with([' ', '\'', ',']))
    })
}

#[test]
fn habits_that_went_do_not_come_back() {
    for (kind, places) in found(&product()) {
        assert!(
            places.is_empty(),
            "{kind}: write it as CONTRIBUTING.md says. The places:\n{}",
            places.join("\n")
        );
    }
}

#[test]
fn each_kind_is_found() {
    let text = "/// What it is.\n/// It goes on.\n/// The manager; none if there is none.\n\
                /// Items of it.\n    None if a => 0,\n    true => 1,\n    false if a => 2,\n    truer => 3,\n\
                pub(in crate::a) fn b() {}\n";
    let source = Source { package: "api".into(), path: "a.rs".into(), text: text.into() };
    let found = found(&[source]);
    assert_eq!(found[COMMENTS], ["a.rs:1"]);
    assert_eq!(found[NONE_IF], ["a.rs:3"]);
    assert_eq!(found[BOOL_ARMS], ["a.rs:6", "a.rs:7"]);
    assert_eq!(found[PRIVATE], ["a.rs:9"]);
}
