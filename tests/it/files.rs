//! Checks of the source that the compiler cannot do: how long files are, and where `unsafe` may be
//! used.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The longest allowed file, in lines.
const MOST_LINES: usize = 500;
/// Lines of the file in the middle, of all below `src`. With shorter ones, many are open for one task.
const MEDIAN_LINES: RangeInclusive<usize> = 120..=300;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn unsafe_code_lives_in_process_alone() {
    let process = root().join("src/manager/process");
    let itself = process.with_extension("rs");
    for file in rust_files(&root().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let uses = text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code");
        let is_of_it = file.starts_with(&process) || file == itself;
        assert!(!uses || is_of_it, "{} allows unsafe code", file.display());
    }
}

#[test]
fn files_are_neither_long_nor_many() {
    let folders = ["src", "tests", "examples", "bench"].map(|folder| root().join(folder));
    let mut lengths: Vec<(usize, PathBuf)> = folders
        .iter()
        .flat_map(|folder| rust_files(folder))
        .map(|file| (fs::read_to_string(&file).unwrap().lines().count(), file))
        .collect();
    let long: Vec<_> = lengths.iter().filter(|(lines, _)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "over {MOST_LINES} lines: {long:?}");
    lengths.retain(|(_, file)| file.starts_with(root().join("src")));
    lengths.sort();
    let (median, _) = lengths[lengths.len() / 2];
    assert!(MEDIAN_LINES.contains(&median), "median {median} lines");
}
