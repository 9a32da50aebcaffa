//! Chooses snapshots, so that few of them have as much as possible in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::super::scenario::snapshots_of_each;
use super::{anonymous, compact, features, folder, read};
use crate::Saved;

/// So many are chosen at most among those whose names begin like this, and those of the lines above: first of
/// real engines, then of engines that are stand-ins, then of the scenarios.
const KINDS: [(&str, usize); 3] = [("real.", 20), ("it.", 45), (SCENARIO, 70)];
const SCENARIO: &str = "scenario.";
/// Snapshots of more pods are large and show nothing else.
const MOST_PODS: usize = 8;

/// A snapshot to choose from.
struct SnapshotOfTest {
    /// The test or the scenario that it was taken in.
    test: String,
    saved: Saved,
    features: BTreeSet<String>,
}

impl SnapshotOfTest {
    fn new(test: String, saved: Saved) -> Self {
        let features = features::of(&saved);
        Self { test, saved, features }
    }
}

/// Writes the chosen ones of those in this folder, and of the scenarios, instead of those that are there.
pub(super) fn choose_anew(recorded: PathBuf) {
    let mut all = Vec::new();
    for (name, saved) in read(recorded) {
        // kind.test.port.number
        let test = name.rsplitn(3, '.').nth(2).unwrap().to_owned();
        all.push(SnapshotOfTest::new(test, anonymous::of(&saved)));
    }
    println!("{} recorded snapshots", all.len());
    for (name, snapshots) in snapshots_of_each() {
        let mut known = BTreeSet::new();
        let small = snapshots.into_iter().filter(|saved| saved.snapshot.pods.len() <= MOST_PODS);
        let found = small.map(|saved| SnapshotOfTest::new(format!("{SCENARIO}{name}"), saved));
        all.extend(found.filter(|found| known.insert(found.features.clone())));
    }
    println!("{} with those of the scenarios", all.len());
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() == Some("json".as_ref()) {
            fs::remove_file(path).unwrap();
        }
    }
    let mut of_one: BTreeMap<&str, usize> = BTreeMap::new();
    for SnapshotOfTest { test, saved, .. } in chosen(&all) {
        let number = of_one.entry(test).or_default();
        *number += 1;
        let text = compact::text(&serde_json::to_value(saved).unwrap());
        fs::write(folder().join(format!("{test}.{number}.json")), text).unwrap();
    }
}

/// Again and again the one that adds most to those that are chosen already; the first of several.
fn chosen(all: &[SnapshotOfTest]) -> Vec<&SnapshotOfTest> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_one: BTreeMap<&str, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for (kind, count) in KINDS {
        let of_kind: Vec<&SnapshotOfTest> =
            all.iter().filter(|found| found.test.starts_with(kind)).collect();
        while chosen.len() < count {
            // What nobody has yet counts most.
            let of_word = |word: &String| match seen.get(word.as_str()) {
                None => 100,
                Some(1) => 10,
                Some(2) => 1,
                Some(_) => 0,
            };
            let worth =
                |found: &SnapshotOfTest| -> usize { found.features.iter().map(of_word).sum() };
            let known = |test: &str| of_one.get(test).copied().unwrap_or_default();
            let left = of_kind.iter().filter(|found| known(&found.test) < of_each(kind));
            let best = left.rev().max_by_key(|found| worth(found));
            let Some(best) = best.filter(|found| worth(found) > 0) else { break };
            for word in &best.features {
                *seen.entry(word).or_default() += 1;
            }
            *of_one.entry(&best.test).or_default() += 1;
            chosen.push(*best);
        }
    }
    let all: BTreeSet<&String> = all.iter().flat_map(|found| &found.features).collect();
    println!("{} of {} features", seen.len(), all.len());
    for word in all.into_iter().filter(|word| !seen.contains_key(word.as_str())) {
        println!("  not {word}");
    }
    chosen
}

/// So many of one test, or of one scenario, are enough; tests on real parts are long and few.
fn of_each(kind: &str) -> usize {
    if kind == "real." { 6 } else { 2 }
}
