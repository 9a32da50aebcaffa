//! Names that programs read, collected from the product's sources: words that a type is shown as,
//! such as codes and reasons; keys of labels and annotations; environment variables; exit codes.

use std::collections::{BTreeMap, BTreeSet};

use super::help;
use crate::support::sources::Source;

/// Names by what they belong to.
pub(super) type Names = BTreeMap<String, BTreeSet<String>>;

pub(super) const KEYS: &str = "keys";
pub(super) const VARIABLES: &str = "variables";
pub(super) const CONDITIONS: &str = "restart: conditions";
pub(super) const FINDINGS: &str = "reconciler: findings of doctor";

pub(super) fn of(sources: &[Source]) -> Names {
    let mut names = Names::new();
    for source in sources {
        let code: Vec<&str> = source.text.lines().filter(|line| !is_comment(line)).collect();
        words_of_types(&source.package, &code, &mut names);
        exit_codes(source, &code, &mut names);
        let code = code.join("\n");
        findings(&code, &mut names);
        for literal in literals(&code) {
            names.entry(KEYS.into()).or_default().extend(keys(literal));
            names.entry(VARIABLES.into()).or_default().extend(variables(literal));
        }
        if let Some((_, kinds)) = code.split_once("const KINDS: [&str") {
            let kinds = kinds.split(';').nth(1).unwrap_or_default();
            let is_type = |word: &&str| word.starts_with(char::is_uppercase);
            let kinds = literals(kinds).filter(is_type).map(str::to_owned);
            names.entry(CONDITIONS.into()).or_default().extend(kinds);
        }
    }
    names.entry(VARIABLES.into()).or_default().extend(help::variables());
    names.retain(|_, words| !words.is_empty());
    names
}

pub(super) fn text(names: &Names) -> String {
    let mut text = String::new();
    for (title, words) in names {
        text.push_str(&format!("=== {title}\n"));
        for word in words {
            text.push_str(&format!("{word}\n"));
        }
        text.push('\n');
    }
    text
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The strings of a source, without what is escaped in them; raw strings do not hold names.
fn literals(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once('"')?;
        let mut end = 0;
        while let Some(at) = after[end..].find(['"', '\\']) {
            end += at;
            if after[end..].starts_with('"') {
                rest = &after[end + 1..];
                return Some(&after[..end]);
            }
            // The escaped character may be one of several bytes.
            end += 1 + after[end + 1..].chars().next().map_or(0, char::len_utf8);
        }
        None
    })
}

/// `Self::Name => "word"` below `impl Type {`.
fn words_of_types(package: &str, code: &[&str], names: &mut Names) {
    let mut of = "";
    // A long word stands on the line below its arm.
    let mut is_below = false;
    for line in code {
        if let Some(rest) = line.strip_prefix("impl ") {
            let subject = rest.split_once(" for ").map_or(rest, |(_, subject)| subject);
            of = subject.trim_end_matches([' ', '{']);
        }
        let line = line.trim_start();
        let arm = line.strip_prefix("Self::").and_then(|arm| arm.split_once(" => \""));
        let below = line.strip_prefix('"').filter(|_| is_below);
        is_below = line.starts_with("Self::") && line.ends_with(" => {");
        let Some(word) = arm.map(|(_, word)| word).or(below) else { continue };
        let word = word.split('"').next().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !word.is_empty() && word.chars().all(is_word) {
            names.entry(format!("{package}: {of}")).or_default().insert(word.to_owned());
        }
    }
}

/// Numbers in files about exit codes: `const NAME: u8 = 64;` and `Name = 64,`.
fn exit_codes(source: &Source, code: &[&str], names: &mut Names) {
    if !source.text.contains("ExitCode") {
        return;
    }
    for line in code {
        let (name, number) =
            line.trim().trim_end_matches([',', ';']).split_once(" = ").unwrap_or_default();
        let is_code = name.ends_with(": u8") || name.chars().all(char::is_alphabetic);
        if is_code && number.parse::<u8>().is_ok() {
            let title = format!("{}: exit codes", source.package);
            names.entry(title).or_default().insert(number.to_owned());
        }
    }
}

/// The code in `Finding::error("code", …)`.
fn findings(code: &str, names: &mut Names) {
    for call in code.split("Finding::").skip(1) {
        let first = call.split_once('(').map(|(_, arguments)| arguments.trim_start());
        let Some(code) = first.and_then(|first| first.strip_prefix('"')?.split('"').next()) else {
            continue;
        };
        names.entry(FINDINGS.into()).or_default().insert(code.to_owned());
    }
}

/// Keys of labels and annotations in a string, and groups of resources.
fn keys(literal: &str) -> impl Iterator<Item = String> {
    let ends = |c: char| !c.is_ascii_alphanumeric() && !"./_-".contains(c);
    let is_key = |word: &&str| {
        let parts = word.split_once('/').filter(|(_, name)| !name.contains('/'));
        parts.is_some_and(|(domain, _)| {
            let is_ours = domain.ends_with("stayput.dev") || domain.ends_with("k8s.elastic.co");
            is_ours && !domain.starts_with("metadata.")
        })
    };
    literal.split(ends).map(|word| word.trim_end_matches('.')).filter(is_key).map(str::to_owned)
}

/// Our environment variables in a string.
fn variables(literal: &str) -> impl Iterator<Item = String> {
    let ends = |c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_';
    let words = literal.split(ends).filter(|word| word.starts_with("STAYPUT_"));
    words.filter(|word| !word.ends_with('_')).map(str::to_owned)
}

#[test]
fn names_are_found_in_code_and_not_in_comments() {
    let text = r#"
// "STAYPUT_NOT"
const A: &str = "a \" b"; const B: &str = "stayput.dev/stopped";
impl std::fmt::Display for Mood {
        Self::Good => "good",
        Self::Bad(_) => "bad: it is",
    Finding::error(
        "sad", 1);
  std::env::var("STAYPUT_MOOD")
"#;
    let source = Source { package: "api".into(), path: String::new(), text: text.into() };
    let found = of(&[source]);
    let has = |title: &str, word: &str| found.get(title).is_some_and(|words| words.contains(word));
    assert!(has("api: Mood", "good") && has(KEYS, "stayput.dev/stopped"), "{found:?}");
    assert!(has(FINDINGS, "sad") && has(VARIABLES, "STAYPUT_MOOD"), "{found:?}");
    assert!(!has(VARIABLES, "STAYPUT_NOT") && found["api: Mood"].len() == 1, "{found:?}");
}
