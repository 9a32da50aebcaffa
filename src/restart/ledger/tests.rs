//! Tests of history.

use super::*;

fn entry(id: &str, began: Option<u64>, nodes: u32, outcome: Outcome) -> HistoryEntry {
    HistoryEntry {
        id: id.to_owned(),
        strategy: Strategy::Rolling,
        outcome,
        reason: String::new(),
        started: Time(0),
        began: began.map(Time),
        seconds: 0,
        nodes,
        steps: BTreeMap::new(),
        skipped_rules: Vec::new(),
        allowed_outage: false,
    }
}

#[test] // proves UPDATE-52
fn what_was_never_begun_or_goes_on_is_not_to_be_checked() {
    for (what, entry, counts) in [
        ("done", entry("a", Some(1), 3, Outcome::Done), true),
        ("its first node failed", entry("a", Some(1), 0, Outcome::RolledBack), true),
        ("given up in the middle", entry("a", Some(1), 1, Outcome::Aborted), true),
        ("by an earlier version", entry("a", None, 3, Outcome::Done), true),
        ("cancelled while it waited", entry("a", None, 0, Outcome::Aborted), false),
        ("replaced in the queue", entry("a", None, 0, Outcome::Superseded), false),
        ("another one goes on with it", entry("a", Some(1), 2, Outcome::Superseded), false),
    ] {
        assert_eq!(entry.is_to_be_checked(), counts, "{what}");
    }
    let history = vec![
        entry("a", Some(1), 3, Outcome::Done),
        entry("b", Some(2), 0, Outcome::Aborted),
        entry("c", None, 0, Outcome::Aborted),
    ];
    let ledger = crate::Ledger { history, ..crate::Ledger::default() };
    assert_eq!(ledger.last_to_check().map(|entry| entry.id.as_str()), Some("b"));
    assert_eq!(crate::Ledger::default().last_to_check(), None);
}
