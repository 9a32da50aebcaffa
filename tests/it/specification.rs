//! Every promise in `SPECIFICATION.md` names a proof, and every proof exists: a test in a file, a
//! scenario, or a benchmark.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder for `scenarios/NAME` in the document.
const SCENARIO_PAGES: &str = "src/restart/tests/scenarios";
const SCENARIO_TESTS: &str = "src/restart/tests/scenario.rs";

/// The tests of one file, and whether `cargo test` leaves them out (`#[ignore]`).
type Tests = BTreeMap<String, bool>;

/// The tests of all files, by path from the root.
struct Index {
    root: PathBuf,
    files: BTreeMap<String, Tests>,
}

impl Index {
    fn of(root: &Path) -> Self {
        let mut texts = BTreeMap::new();
        for folder in ["src", "tests"] {
            read_rust_files(root, &root.join(folder), &mut texts);
        }
        let macros: BTreeSet<String> =
            texts.values().flat_map(|text| macros_that_make_tests(text)).collect();
        let tests = |text: &String| {
            let mut tests = functions(text);
            tests.extend(listed(text, &macros));
            tests
        };
        let files = texts.iter().map(|(path, text)| (path.clone(), tests(text))).collect();
        Self { root: root.into(), files }
    }

    /// What is wrong with a proof. `None`: the words are no proof.
    fn judge(&self, words: &str) -> Option<Result<(), String>> {
        if let Some(name) = words.strip_prefix("scenarios/") {
            return Some(self.has_scenario(name));
        }
        if let Some(name) = words.strip_prefix("bench/") {
            let exists = self.root.join("bench").join(name).is_file();
            return Some(if exists { Ok(()) } else { Err("there is no such benchmark".into()) });
        }
        let (path, name) = words.split_once("::")?;
        path.ends_with(".rs").then(|| self.has_test(path, name))
    }

    fn has_test(&self, path: &str, name: &str) -> Result<(), String> {
        match self.files.get(path).and_then(|tests| tests.get(name)) {
            Some(false) => return Ok(()),
            Some(true) => return Err("`cargo test` leaves it out (#[ignore])".into()),
            None => {}
        }
        let reason = if self.files.contains_key(path) {
            "the file has no test of this name"
        } else {
            "there is no such file"
        };
        let elsewhere = self.files.iter().filter(|(_, tests)| tests.contains_key(name));
        let hints = elsewhere.map(|(path, _)| format!("; see `{path}::{name}`"));
        Err(hints.fold(reason.to_owned(), |text, hint| text + &hint))
    }

    fn has_scenario(&self, name: &str) -> Result<(), String> {
        if !self.root.join(SCENARIO_PAGES).join(name).with_extension("txt").is_file() {
            return Err(format!("there is no such page in {SCENARIO_PAGES}"));
        }
        self.has_test(SCENARIO_TESTS, name)
    }

    /// All that is wrong with the tables of a document, line by line.
    fn problems(&self, document: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let mut is_promise = false;
        for (line, number) in document.lines().zip(1..) {
            let at = format!("SPECIFICATION.md:{number}");
            if !line.starts_with("| ") {
                is_promise = line.starts_with("|---");
                continue;
            }
            let judged =
                proofs(line).into_iter().filter_map(|proof| Some((self.judge(&proof)?, proof)));
            let judged: Vec<_> = judged.collect();
            if is_promise && judged.is_empty() {
                problems.push(format!("{at}: a promise without a proof"));
            }
            for (verdict, proof) in judged {
                if let Err(reason) = verdict {
                    problems.push(format!("{at}: `{proof}`: {reason}"));
                }
            }
        }
        problems
    }
}

fn read_rust_files(root: &Path, folder: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_rust_files(root, &path, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            texts.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Everything in backticks. `::name` is in the file named before it.
fn proofs(line: &str) -> Vec<String> {
    let mut file = "";
    let quoted = line.split('`').skip(1).step_by(2);
    let proofs = quoted.map(|words| match words.split_once("::") {
        Some(("", name)) => format!("{file}::{name}"),
        Some((path, _)) => {
            file = path;
            words.to_owned()
        }
        None => words.to_owned(),
    });
    proofs.collect()
}

/// The functions under `#[test]` or `#[tokio::test]`.
fn functions(text: &str) -> Tests {
    let mut tests = Tests::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        is_ignored |= line.starts_with("#[ignore");
        let Some((before, after)) = line.split_once("fn ") else { continue };
        if !["", "async ", "pub ", "pub(crate) "].contains(&before) {
            continue;
        }
        let end = after.find(|c: char| !is_in_name(c)).unwrap_or(after.len());
        if is_test && end > 0 {
            tests.insert(after[..end].to_owned(), is_ignored);
        }
        (is_test, is_ignored) = (false, false);
    }
    tests
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Names of the macros in this file that define tests.
fn macros_that_make_tests(text: &str) -> BTreeSet<String> {
    let definitions = text.split("macro_rules! ").skip(1);
    let definitions = definitions.filter_map(|rest| rest.split_once("\n}\n"));
    let tests = definitions.filter(|(definition, _)| definition.contains("#[test]"));
    tests.map(|(definition, _)| definition.split(' ').next().unwrap().to_owned()).collect()
}

/// The names that calls of these macros in this file contain.
fn listed(text: &str, macros: &BTreeSet<String>) -> Tests {
    let mut tests = Tests::new();
    for name in macros {
        for opening in ["! {", "!("] {
            for body in text.split(&format!("\n{name}{opening}")).skip(1) {
                let end = body.find(['}', ')']).unwrap_or(body.len());
                let words = body[..end].split(|c: char| !is_in_name(c));
                tests.extend(words.map(|word| (word.to_owned(), false)));
            }
        }
    }
    tests
}

#[test]
fn every_promise_has_a_proof_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("SPECIFICATION.md")).unwrap();
    let index = Index::of(root);
    let problems = index.problems(&document);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    let proofs = document.lines().filter(|line| line.starts_with("| ") && line.contains("`"));
    assert!(proofs.count() > 50, "is the document parsed correctly?");
}

/// Checks this document in a small repository; returns the problems.
fn problems_of(document: &str) -> Vec<String> {
    let files = [
        ("src/a.rs", "#[test]\nfn right() {}\n\nfn helper() {}\n\n#[test]\nfn twice() {}\n"),
        (
            "src/b.rs",
            "#[test]\n#[ignore = \"takes an hour\"]\nfn long() {}\n\nfn right() {}\n\n\
             #[tokio::test(start_paused = true)]\nasync fn waits() {}\n\n// #[test]\n// fn gone() {}\n",
        ),
        ("tests/c.rs", "#[test]\nfn twice() {}\n\nstories! { first second }\n"),
        ("tests/d.rs", "macro_rules! stories {\n    #[test]\n    fn $story() {}\n}\n"),
        (
            SCENARIO_TESTS,
            "macro_rules! scenarios {\n    #[test]\n}\n\nscenarios! {\n    pause\n}\n",
        ),
        ("src/restart/tests/scenarios/pause.txt", ""),
        ("src/restart/tests/scenarios/forgotten.txt", ""),
        ("bench/idle", ""),
    ];
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Index::of(root.path()).problems(document)
}

#[test]
fn proofs_that_exist_are_taken() {
    let document = "| promise | proof |\n|---|---|\n\
        | a function, also `async` | `src/a.rs::right`, `src/b.rs::waits` |\n\
        | the same name twice | `src/a.rs::twice`, `tests/c.rs::twice`, `::first` |\n\
        | listed by a macro | `tests/c.rs::second` |\n\
        | others | `scenarios/pause` `bench/idle` |\n";
    assert_eq!(problems_of(document), Vec::<String>::new());
}

#[test]
fn every_line_that_is_wrong_is_named() {
    for (words, reason) in [
        ("src/a.rs::wrong", "the file has no test of this name"),
        ("src/a.rs::helper", "the file has no test of this name"),
        ("src/b.rs::right", "the file has no test of this name; see `src/a.rs::right`"),
        ("src/z.rs::right", "there is no such file; see `src/a.rs::right`"),
        (
            "src/z.rs::twice",
            "there is no such file; see `src/a.rs::twice`; see `tests/c.rs::twice`",
        ),
        ("src/b.rs::gone", "the file has no test of this name"),
        ("src/b.rs::long", "`cargo test` leaves it out (#[ignore])"),
        ("scenarios/absent", "there is no such page in src/restart/tests/scenarios"),
        ("scenarios/forgotten", "the file has no test of this name"),
        ("bench/absent", "there is no such benchmark"),
    ] {
        let expected = format!("SPECIFICATION.md:2: `{words}`: {reason}");
        assert_eq!(problems_of(&format!("\n| a promise | `{words}` |\n")), [expected]);
    }
    let two = "| one | `src/a.rs::right`, `::one` |\n| two | `src/a.rs::two` |\n";
    let problems = problems_of(two);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("SPECIFICATION.md:1: `src/a.rs::one`: "), "{problems:?}");
}

#[test]
fn a_promise_without_a_proof_is_named() {
    let document = "| promise | proof |\n|---|---|\n| it `works` | see above |\n";
    assert_eq!(problems_of(document), ["SPECIFICATION.md:3: a promise without a proof"]);
}
