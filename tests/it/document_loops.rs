//! Loops of the documents: each ends at the first command that fails, so that pasting it takes away no
//! second pod after a first one that does not come back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text of a document of `docs`.
fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// Every `sh` block of a document.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap())
}

/// Runs a block with a kubectl that writes down its calls, prints the strategy `OnDelete`, and fails
/// where `fails`, a pattern of the shell, matches its arguments. Returns the exit code and the calls.
fn run(block: &str, fails: &str) -> (Option<i32>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let calls = directory.path().join("calls");
    let kubectl = format!(
        "kubectl() {{ echo \"$*\" >> {}; case \"$*\" in {fails}) return 1 ;; \
         *updateStrategy*) echo OnDelete ;; esac; }}",
        calls.display()
    );
    let script = format!("{kubectl}\n{block}");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let calls = fs::read_to_string(calls).unwrap_or_default();
    (output.status.code(), calls.lines().map(str::to_owned).collect())
}

fn deleted(calls: &[String]) -> Vec<&str> {
    let deletes = calls.iter().filter_map(|call| call.split_once(" delete pod "));
    deletes.map(|(_, pod)| pod).collect()
}

#[test] // proves OPERATE-5
fn pods_are_deleted_only_as_long_as_each_comes_back() {
    let text = document("first-ten-minutes.md");
    let block = blocks(&text).find(|block| block.contains("OnDelete)")).unwrap();
    let (code, calls) = run(block, "none");
    assert_eq!((code, deleted(&calls)), (Some(0), vec!["logs-2", "logs-1", "logs-0"]));
    for fails in ["*delete*", "*--for=create*", "*condition=Ready*", "*_cluster/health*"] {
        let (code, calls) = run(block, fails);
        assert_eq!((code, deleted(&calls)), (Some(1), vec!["logs-2"]), "{fails}: {calls:?}");
    }
}

/// Documents that a person reads with a cluster at hand.
fn documents() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let folders = [docs.clone(), docs.join("runbook")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// A loop that changes something has an exit for its failure.
#[test] // proves OPERATE-5
fn every_loop_that_changes_ends_at_a_failure() {
    const CHANGES: [&str; 6] =
        [" delete ", " patch ", " replace ", " apply ", " annotate ", " wait "];
    let mut loops = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for block in
            blocks(&text).filter(|block| block.contains("; do\n") || block.contains("\ndo "))
        {
            loops += 1;
            let changes = CHANGES.iter().any(|word| block.contains(word));
            assert!(block.contains("exit 1") || !changes, "{}: {block}", path.display());
        }
    }
    assert!(loops > 2, "{loops}");
}
