//! Keeps the doors between the rooms shut, and the files small.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms of ours each room may import. `ARCHITECTURE.md` says why.
const DOORS: &[(&str, &[&str])] = &[
    ("api", &["checksum"]),
    ("checksum", &[]),
    ("lifecycle", &["api"]),
    ("restart", &["api", "checksum"]),
    ("cluster", &["api", "checksum", "restart"]),
    ("kubectl", &["api", "cluster", "restart", "terminal"]),
    ("terminal", &[]),
    (
        "reconciler",
        &[
            "api",
            "checksum",
            "cluster",
            "engine_client",
            "https",
            "jwt",
            "manager_client",
            "restart",
            "telemetry",
        ],
    ),
    ("process", &[]),
    ("config_watch", &["api", "checksum", "lifecycle"]),
    ("supervisor", &["api", "checksum", "config_watch", "lifecycle", "process"]),
    ("http", &["api", "jwt", "lifecycle", "metrics", "pem", "supervisor"]),
    ("metrics", &["api"]),
    ("telemetry", &[]),
    ("manager_client", &["api", "https"]),
    ("https", &["pem"]),
    ("engine_client", &["https"]),
    ("jwt", &[]),
    ("pem", &[]),
    ("settings", &["api", "config_watch", "http", "jwt", "lifecycle", "supervisor", "telemetry"]),
    (
        "cli",
        &[
            "api",
            "checksum",
            "config_watch",
            "http",
            "https",
            "jwt",
            "lifecycle",
            "manager_client",
            "process",
            "settings",
            "supervisor",
            "telemetry",
            "terminal",
        ],
    ),
];

/// What the tests inside a room may use beside that: the world in which whole restarts are played
/// has the shipped state machine for its managers, not a copy of it; and the quorum is asked about
/// clusters as real engines described themselves.
const DOORS_OF_TESTS: &[(&str, &str)] = &[("restart", "lifecycle"), ("restart", "engine_client")];

/// No file of ours may be longer.
const MOST_LINES: usize = 500;
/// Half of the files of `src` are at most this long.
const MEDIAN_LINES: usize = 150;

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

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn room_of(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Every `crate::room` in the text, also inside `use crate::{room::…, other}`.
fn rooms_named(text: &str, rooms: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().to_owned(),
            None => rest.to_owned(),
        };
        for part in names.split(',') {
            let name: String =
                part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if rooms.contains(name.as_str()) {
                named.insert(name);
            }
            if !rest.starts_with('{') {
                break;
            }
        }
    }
    named
}

#[test]
fn rooms_import_only_through_their_doors() {
    let doors: BTreeMap<&str, &[&str]> = DOORS.iter().copied().collect();
    let rooms: BTreeSet<&str> = doors.keys().copied().collect();
    let mut wrong = Vec::new();
    for file in rust_files(&root().join("src")) {
        let room = room_of(&file);
        let Some(open) = doors.get(room.as_str()) else { continue };
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        for named in rooms_named(&fs::read_to_string(&file).unwrap(), &rooms) {
            if is_test && DOORS_OF_TESTS.contains(&(room.as_str(), named.as_str())) {
                continue;
            }
            if named != room && !open.contains(&named.as_str()) {
                wrong.push(format!("{}: {room} must not use {named}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_has_its_doors_listed() {
    let doors: BTreeMap<&str, &[&str]> = DOORS.iter().copied().collect();
    let rooms: BTreeSet<String> = rust_files(&root().join("src"))
        .iter()
        .map(|file| room_of(file))
        .filter(|room| room != "lib" && room != "bin")
        .collect();
    let listed: BTreeSet<String> = doors.keys().map(|room| (*room).to_owned()).collect();
    assert_eq!(rooms, listed);
}

#[test]
fn unsafe_code_lives_in_the_process_room_alone() {
    for file in rust_files(&root().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let room = room_of(&file);
        let word = "unsafe";
        let uses = text.contains(&format!("{word} {{")) || text.contains("allow(unsafe_code)");
        assert!(!uses || room == "process", "{} uses {word} code", file.display());
    }
}

#[test]
fn files_stay_small() {
    let mut lengths: Vec<(usize, PathBuf)> = ["src", "tests", "examples", "benches"]
        .iter()
        .map(|folder| root().join(folder))
        .filter(|folder| folder.exists())
        .flat_map(|folder| rust_files(&folder))
        .map(|file| (fs::read_to_string(&file).unwrap().lines().count(), file))
        .collect();
    let long: Vec<_> = lengths.iter().filter(|(lines, _)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "over {MOST_LINES} lines: {long:?}");
    lengths.retain(|(_, file)| file.starts_with(root().join("src")));
    lengths.sort();
    let (median, _) = lengths[lengths.len() / 2];
    assert!(median <= MEDIAN_LINES, "median {median} lines");
}
