//! Files, functions and types that the documents name exist.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with documents; `.` is the root itself.
const FOLDERS: [&str; 8] = [
    ".",
    "docs",
    "docs/adr",
    "docs/runbook",
    "bench",
    "proto",
    "examples/kubernetes",
    "tests/surface",
];
/// Words in backticks that begin with one of these are paths from the root.
const PATHS: [&str; 9] =
    ["bench/", "deploy/", "docker/", "docs/", "examples/", "proto/", "release/", "src/", "tests/"];
/// The keywords before a name in its definition.
const DEFINITIONS: [&str; 7] =
    ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "macro_rules! "];

/// What is wrong with a document in `folder`, line by line.
fn problems(root: &Path, folder: &Path, document: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut is_code = false;
    for (line, number) in document.lines().zip(1..) {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        let named = line.split('`').skip(1).step_by(2).filter_map(|words| named(root, words));
        let linked = line.split("](").skip(1).filter_map(|rest| linked(folder, rest));
        problems.extend(named.chain(linked).map(|problem| format!("{number}: {problem}")));
    }
    problems
}

/// What is wrong with `src/file.rs`, or with `src/file.rs::name`.
fn named(root: &Path, words: &str) -> Option<String> {
    let is_pattern = words.contains([' ', '*', '…', '{']) || words.contains("NAME");
    if is_pattern || !PATHS.iter().any(|start| words.starts_with(start)) {
        return None;
    }
    let (path, name) = words.split_once("::").unwrap_or((words, ""));
    if !root.join(path).exists() {
        return Some(format!("`{words}`: there is no such file"));
    }
    if name.is_empty() {
        return None;
    }
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    let is_here = |definition: &str| {
        let definition = format!("{definition}{name}");
        let mut rest = text.split(&definition).skip(1);
        rest.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let exists = DEFINITIONS.iter().any(|definition| is_here(definition));
    (!exists).then(|| format!("`{words}`: the file does not define it"))
}

/// What is wrong with the target of a link.
fn linked(folder: &Path, rest: &str) -> Option<String> {
    let target = rest.split(')').next()?;
    let path = target.split('#').next()?;
    let is_elsewhere = path.is_empty() || path.contains("://");
    (!is_elsewhere && !folder.join(path).exists())
        .then(|| format!("({target}): there is no such file"))
}

#[test]
fn what_the_documents_name_is_there() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for folder in FOLDERS.map(|folder| root.join(folder)) {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(&root).unwrap().display();
                let document = fs::read_to_string(&path).unwrap();
                let problems = problems(&root, &folder, &document);
                wrong.extend(problems.into_iter().map(|problem| format!("{name}:{problem}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_not_there_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let this = "tests/it/documents.rs";
    for right in [
        format!("`{this}` and `{this}::linked` and `{this}::PATHS`"),
        "`src/restart/NAME.rs`, `cargo run --example demo`, `docs/*.md`".to_owned(),
        "[this](../README.md#try-it), [that](#here), [other](https://example.org/x)".to_owned(),
        "```\n`src/absent.rs`\n```".to_owned(),
    ] {
        assert_eq!(problems(root, &root.join("docs"), &right), Vec::<String>::new(), "{right}");
    }
    for (wrong, problem) in [
        ("`src/absent.rs`", "1: `src/absent.rs`: there is no such file"),
        (
            "\n`tests/it/documents.rs::problem`",
            "2: `tests/it/documents.rs::problem`: the file does not define it",
        ),
        ("[this](README.md)", "1: (README.md): there is no such file"),
    ] {
        assert_eq!(problems(root, &root.join("docs"), wrong), [problem]);
    }
}
