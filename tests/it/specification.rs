//! Every promise in `SPECIFICATION.md` has an id, and what proves it has that id, too: a test, behind
//! `#[test]`, or above a function that a macro makes tests from; or a benchmark. `UPDATE_DOCS=1 cargo test --test it specification` writes the table of
//! all proofs, `tests/surface/promises.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::surface::is_as_written;

/// What stands before the ids in a proof.
const PROVES: &str = " proves ";

/// What says that it proves promises.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Proof {
    /// `path::NAME` of a test, or the path of a benchmark.
    name: String,
    ids: Vec<String>,
    /// `cargo test` leaves it out.
    is_ignored: bool,
}

/// The ids behind `// proves` or `# proves` in a line.
fn ids(line: &str) -> Vec<String> {
    let Some((before, ids)) = line.split_once(PROVES) else { return Vec::new() };
    if !before.ends_with("//") && before != "#" {
        return Vec::new();
    }
    ids.split(',').map(|id| id.trim().to_owned()).collect()
}

/// The tests of a file that prove something: functions, and names in lists of macros.
fn tests(path: &str, text: &str) -> Vec<Proof> {
    let mut found = Vec::new();
    // Of the test whose attributes are being read.
    let mut attributes: Option<(Vec<String>, bool)> = None;
    for line in text.lines().map(str::trim_start) {
        let is_test = line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        // In a line of its own: of a function that a macro calls from its tests.
        let is_own_line = line.starts_with("// proves ");
        if line.starts_with("//") && !is_own_line {
            continue;
        }
        if is_test || is_own_line {
            attributes = Some((ids(line), false));
        } else if let Some((ids, is_ignored)) = &mut attributes {
            *is_ignored |= line.starts_with("#[ignore");
            let Some((_, after)) = line.split_once("fn ") else { continue };
            let name = name_at_begin(after);
            if !ids.is_empty() {
                let (name, ids, is_ignored) = (format!("{path}::{name}"), ids.clone(), *is_ignored);
                found.push(Proof { name, ids, is_ignored });
            }
            attributes = None;
        } else {
            let (ids, name) = (ids(line), name_at_begin(line));
            if !ids.is_empty() {
                found.push(Proof { name: format!("{path}::{name}"), ids, is_ignored: false });
            }
        }
    }
    found
}

fn name_at_begin(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// All proofs below a root.
fn proofs(root: &Path) -> Vec<Proof> {
    let mut found = Vec::new();
    for pattern in ["src/**/*.rs", "tests/**/*.rs", "bench/*"] {
        let pattern = root.join(pattern);
        for path in glob::glob(pattern.to_str().unwrap()).unwrap().map(Result::unwrap) {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            // The texts in this file are examples.
            if !path.is_file() || file!().ends_with(&name) {
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            if name.ends_with(".rs") {
                found.extend(tests(&name, &text));
            } else if let Some(ids) = text.lines().map(ids).find(|ids| !ids.is_empty()) {
                found.push(Proof { name, ids, is_ignored: false });
            }
        }
    }
    found
}

/// The ids in the tables of the document, in its order, and what is wrong with them.
fn promises(document: &str) -> (Vec<String>, Vec<String>) {
    let (mut promises, mut problems) = (Vec::new(), Vec::new());
    let mut is_promise = false;
    for (line, number) in document.lines().zip(1..) {
        if !line.starts_with("| ") {
            is_promise = line.starts_with("|---");
            continue;
        }
        let id = line[2..].split(" |").next().unwrap_or_default();
        let is_id = id.split_once('-').is_some_and(|(prefix, number)| {
            prefix.bytes().all(|c| c.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
        });
        if !is_promise {
            continue;
        }
        if !is_id {
            problems.push(format!("SPECIFICATION.md:{number}: a promise without an id"));
            continue;
        }
        if promises.iter().any(|known| known == id) {
            problems.push(format!("SPECIFICATION.md:{number}: {id} is there twice"));
        }
        promises.push(id.to_owned());
    }
    (promises, problems)
}

/// What is wrong with document and proofs, and the table of both.
fn judge(document: &str, proofs: &[Proof]) -> (Vec<String>, String) {
    let (promises, mut problems) = promises(document);
    let mut by_id: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for proof in proofs {
        if proof.is_ignored {
            problems.push(format!("{}: `cargo test` leaves it out (#[ignore])", proof.name));
        }
        for id in &proof.ids {
            if !promises.contains(id) {
                problems.push(format!("{}: SPECIFICATION.md has no {id}", proof.name));
            }
            by_id.entry(id).or_default().insert(&proof.name);
        }
    }
    let mut table = String::new();
    for id in &promises {
        let Some(names) = by_id.get(id.as_str()) else {
            problems.push(format!("{id}: nothing says that it proves it"));
            continue;
        };
        for name in names {
            table.push_str(&format!("{id} {name}\n"));
        }
    }
    (problems, table)
}

#[test]
fn every_promise_has_a_proof() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("SPECIFICATION.md")).unwrap();
    let (problems, table) = judge(&document, &proofs(root));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    assert!(table.lines().count() > 1000, "are the proofs found?");
    is_as_written("promises.txt", &table);
}

const DOCUMENT: &str = "| id | promise |\n|---|---|\n| STOP-1 | One. |\n| STOP-2 | Two. |\n";

#[test]
fn proofs_are_found_behind_tests_names_and_in_benchmarks() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("src/a.rs", "#[test] // proves STOP-1\nfn right() {}\n#[test]\nfn other() {}\n"),
        ("tests/c.rs", "stories! {\n    first\n    second // proves STOP-1, STOP-2\n}\n"),
        ("bench/idle", "# proves STOP-2\n\"\"\"It is fast.\"\"\"\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (problems, table) = judge(DOCUMENT, &proofs(root.path()));
    assert_eq!(problems, Vec::<String>::new());
    let lines = "STOP-1 src/a.rs::right\nSTOP-1 tests/c.rs::second\nSTOP-2 bench/idle\n\
                 STOP-2 tests/c.rs::second\n";
    assert_eq!(table, lines);
}

#[test]
fn what_is_wrong_is_named() {
    let text = "#[tokio::test(start_paused = true)] // proves STOP-1, STOP-3\n#[ignore = \"long\"]\n\
                async fn long() {}\n";
    let (problems, _) =
        judge(&format!("{DOCUMENT}| STOP-1 | Again. |\n| Words. |\n"), &tests("a.rs", text));
    let expected = [
        "SPECIFICATION.md:5: STOP-1 is there twice",
        "SPECIFICATION.md:6: a promise without an id",
        "a.rs::long: `cargo test` leaves it out (#[ignore])",
        "a.rs::long: SPECIFICATION.md has no STOP-3",
        "STOP-2: nothing says that it proves it",
    ];
    assert_eq!(problems, expected);
}
