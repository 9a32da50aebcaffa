use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::lifecycle::{Event, ExitStatus, Held, HeldCode, Lifecycle, Policy, Tree};
use stayput_api::{Desired, ExitReason, Process};

fn record(pod: Option<&str>) -> Record {
    let held = Held { code: HeldCode::StartFailed, message: "it ended".to_owned() };
    let intent = Intent { desired: Desired::Stopped, held: Some(held), ..Intent::default() };
    Record::new("b00t".to_owned(), pod.map(str::to_owned), intent, None, None)
}

fn journal_with(content: &[u8]) -> (TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("journal.json"), content).unwrap();
    let journal = Journal::new(dir.path());
    (dir, journal)
}

#[track_caller]
fn assert_unreadable(journal: &Journal, pod: Option<&str>, expected: &str) {
    match journal.recover(pod) {
        Recovered::Unreadable(message) => {
            assert!(message.contains(expected), "{message:?} does not contain {expected:?}");
            assert!(message.contains("start or stop it"), "{message:?} has no advice");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_written_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    assert_eq!(journal.recover(None), Recovered::Fresh);
    let record = record(Some("uid-1"));
    journal.write(&record).unwrap();
    let intent = Box::new(record.intent.clone());
    let expected = Recovered::Journal { intent, last_exit: None, run: None };
    assert_eq!(journal.recover(Some("uid-1")), expected);
    journal.write(&record).unwrap();
    assert_eq!(journal.recover(None), expected, "an unknown pod is not another pod");
}

/// As this version writes it, with everything that it may have.
const FIRST: &str = include_str!("first.json");

/// A field in each object, of which there is an unknown number.
fn add_unknown_fields(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(add_unknown_fields);
            fields.insert("later".to_owned(), serde_json::json!({"much": ["later"]}));
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(add_unknown_fields),
        _ => {}
    }
}

#[test] // proves JOURNAL-10
fn a_journal_of_the_first_release_is_read_and_written_as_it_was() {
    let record = parse(FIRST.as_bytes(), Some("u-1")).unwrap();
    assert!(record.intent.fencing.last.is_some() && record.last_exit.is_some());
    let value: serde_json::Value = serde_json::from_str(FIRST).unwrap();
    assert_eq!(serde_json::to_value(&record).unwrap(), value);
}

#[test] // proves JOURNAL-10
fn a_journal_with_what_only_a_newer_version_knows_is_read() {
    let record = parse(FIRST.as_bytes(), Some("u-1")).unwrap();
    let mut newer: serde_json::Value = serde_json::from_str(FIRST).unwrap();
    add_unknown_fields(&mut newer);
    assert_eq!(parse(newer.to_string().as_bytes(), Some("u-1")).unwrap(), record);
    newer["last_exit"]["reason"] = "evicted".into();
    newer["intent"]["held"]["code"] = "evicted".into();
    let read = parse(newer.to_string().as_bytes(), Some("u-1")).unwrap();
    assert_eq!(read.last_exit.map(|exit| exit.reason), Some(ExitReason::Unknown));
    let held = read.intent.held.unwrap();
    assert_eq!((held.code, held.message), (HeldCode::Unknown, record.intent.held.unwrap().message));
}

#[test] // proves JOURNAL-11
fn an_engine_that_leaves_forty_thousand_processes_behind_leaves_a_journal_that_can_be_read() {
    let process = |pid| Process { pid, command: "x".repeat(200) };
    let many = |pids: std::ops::Range<u32>| pids.map(process).collect::<Vec<_>>();
    let mut lifecycle = Lifecycle::new(Policy::default(), 0);
    let mut taken = lifecycle.hand_over();
    taken.run = Some(crate::lifecycle::Run {
        id: "run".to_owned(),
        pid: 1,
        started_at: 0,
        checksum: None,
        config: stayput_api::ConfigChoice::Mounted,
        config_uncertain: false,
        environment: None,
        requested: true,
        was_ready: true,
    });
    let tree =
        |stragglers, strangers| Event::Tree(Tree { stragglers, strangers, ..Tree::default() });
    for event in [
        Event::Boot(Recovered::TakenOver(Box::new(taken))),
        Event::EngineExited { status: ExitStatus::Code(0), oom: false },
        tree(many(2..40_002), many(50_000..50_150)),
        tree(many(2..20_002), vec![]),
        tree(vec![], many(50_000..50_150)),
    ] {
        lifecycle.step(1, event);
    }
    let exit = lifecycle.last_exit().cloned().unwrap();
    assert_eq!((exit.stragglers.len(), exit.strangers.len()), (100, 100));
    assert_eq!(exit.unnamed, 39_900 + 50);
    let record = Record::new("b".into(), None, lifecycle.intent().clone(), None, Some(exit));
    let written = serde_json::to_vec(&record).unwrap();
    assert!((written.len() as u64) < MAX_BYTES, "{}", written.len());
    assert_eq!(parse(&written, None).unwrap(), record);
}

#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    Journal::new(dir.path()).write(&record(None)).unwrap();
    let mode = fs::metadata(dir.path().join("journal.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_empty_journal_is_held() {
    let (_dir, journal) = journal_with(b"");
    assert_unreadable(&journal, None, "is empty");
}

#[test]
fn a_torn_journal_is_held_at_every_length() {
    let whole = serde_json::to_vec(&record(Some("uid-1"))).unwrap();
    for length in 1..whole.len() {
        let (_dir, journal) = journal_with(&whole[..length]);
        assert_unreadable(&journal, Some("uid-1"), "journal.json");
    }
}

#[test]
fn a_foreign_file_is_held() {
    let (_dir, journal) = journal_with(b"{\"state\":\"started\"}");
    assert_unreadable(&journal, None, "no journal of stayput");
    let (_dir, journal) = journal_with(b"{\"schema\":1,\"desired\":\"running\"}");
    assert_unreadable(&journal, None, "not a whole journal");
}

#[test]
fn a_newer_journal_is_held_and_names_both_schemas() {
    let (_dir, journal) = journal_with(b"{\"schema\":2,\"anything\":[]}");
    assert_unreadable(&journal, None, "has schema 2, this version of stayput knows 1");
}

#[test]
fn the_journal_of_another_pod_is_held() {
    let bytes = serde_json::to_vec(&record(Some("uid-1"))).unwrap();
    let (_dir, journal) = journal_with(&bytes);
    assert_unreadable(&journal, Some("uid-2"), "was written by pod uid-1, this is pod uid-2");
}

#[test]
fn a_directory_in_its_place_and_a_huge_file_are_held() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("journal.json")).unwrap();
    assert_unreadable(&Journal::new(dir.path()), None, "is not a file");
    let (_dir, journal) = journal_with(&vec![b' '; 2 << 20]);
    assert_unreadable(&journal, None, "not a journal");
}

#[test]
fn an_unreadable_journal_is_kept_when_somebody_decided() {
    for earlier in [None, Some("of an earlier time")] {
        let (dir, journal) = journal_with(b"torn");
        let kept = dir.path().join("journal.json.unreadable");
        if let Some(earlier) = earlier {
            fs::write(&kept, earlier).unwrap();
        }
        journal.replace_unreadable(&record(None)).unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"torn");
        assert!(matches!(journal.recover(None), Recovered::Journal { .. }));
    }
}

#[test]
fn a_directory_in_the_journals_place_is_kept_too() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("journal.json")).unwrap();
    let journal = Journal::new(dir.path());
    journal.replace_unreadable(&record(None)).unwrap();
    assert!(dir.path().join("journal.json.unreadable").is_dir());
    assert!(matches!(journal.recover(None), Recovered::Journal { .. }));
}

#[test] // proves JOURNAL-9
fn an_unreadable_journal_is_in_its_place_until_another_one_is_written() {
    let (dir, journal) = journal_with(b"torn");
    // What cannot be removed is in the way, as a full disk would be.
    fs::create_dir(dir.path().join("journal.json.new")).unwrap();
    journal.replace_unreadable(&record(None)).unwrap_err();
    assert_unreadable(&journal, None, "torn");
}

#[test]
fn a_leftover_of_a_crash_before_the_rename_is_ignored_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    fs::write(dir.path().join("journal.json.new"), b"torn").unwrap();
    assert_eq!(journal.recover(None), Recovered::Fresh);
    journal.write(&record(None)).unwrap();
    assert!(matches!(journal.recover(None), Recovered::Journal { .. }));
}

#[test]
fn a_missing_state_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(&dir.path().join("gone"));
    let error = journal.write(&record(None)).unwrap_err().to_string();
    assert!(error.contains("gone/journal.json") && error.contains("No such file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_a_journal_or_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(error) = parse(&bytes, Some("uid")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_journal_with_one_byte_changed_never_panics(at in 0_usize..2_000, byte in any::<u8>()) {
        let mut bytes = serde_json::to_vec(&record(Some("uid"))).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = parse(&bytes, Some("uid"));
    }
}
