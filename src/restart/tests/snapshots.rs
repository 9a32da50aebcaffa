//! What is planned for snapshots that were taken all along real restarts and those of the scenarios:
//! `snapshots/taken/NAME.json`, and the plans of all of them in `plans.txt` there.
//!
//! `UPDATE_DOCS=1 cargo test -p stayput-restart snapshots` writes the plans anew. The snapshots stay
//! as they are: they are what another way to decide is compared with. After a change of their format
//! they are chosen anew from what is recorded, as `kubectl stayput snapshot` would, all along these tests:
//! `STAYPUT_RECORD_SNAPSHOTS=DIRECTORY cargo test --test it reconciler::` (the one that counts requests at
//! rest fails then), and `--test real restart::aborts restart::opensearch restart::elasticsearch rules::`.
//! Then: `STAYPUT_RECORDED=DIRECTORY UPDATE_DOCS=1` with the command above.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test reads and writes its fixtures"
)]

mod anonymous;
mod choose;
mod compact;
mod features;
mod page;

use std::fs;
use std::path::PathBuf;

use crate::Saved;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/taken")
}

/// Name and snapshot of each JSON file in a folder, sorted by name.
fn read(folder: PathBuf) -> Vec<(String, Saved)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension() == Some("json".as_ref())).collect();
    files.sort();
    let named = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let saved = Saved::parse(&fs::read_to_string(&path).unwrap());
        (name, saved.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    files.into_iter().map(named).collect()
}

#[test] // proves RESTART-25
fn what_is_planned_for_each_snapshot_is_written_down() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    if let Some(recorded) = std::env::var_os("STAYPUT_RECORDED").filter(|_| update) {
        choose::choose_anew(recorded.into());
    }
    let snapshots = read(folder());
    assert!(snapshots.len() >= 50, "{} snapshots", snapshots.len());
    let page: String = snapshots.iter().map(|(name, saved)| page::of(name, saved)).collect();
    let file = folder().join("plans.txt");
    if update {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(was, is)| was != is);
    assert!(
        written == page,
        "another plan is made than src/restart/tests/snapshots/taken/plans.txt has; the first difference is {differs:#?}. \
         If it is meant: `UPDATE_DOCS=1 cargo test -p stayput-restart snapshots`"
    );
}

#[test]
fn the_snapshots_name_no_machine_and_are_small() {
    let (mut size, mut files) = (0, 0);
    for entry in fs::read_dir(folder()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for words in ["/tmp/", "/work/", "/root/", "/home/", "127.0.", "BEGIN ", "eyJ"] {
            assert!(!text.contains(words), "{words}: {text}");
        }
        size += text.len();
        files += 1;
    }
    assert!(size < 610_000, "{size} bytes in {files} files");
}
