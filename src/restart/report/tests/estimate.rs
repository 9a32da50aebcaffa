//! The estimate in the report.

use super::{shown, under_way, waits};
use crate::{Code, Predicate, Report, Snapshot, Time, Waiting};

/// `logs-2` was done after 90 seconds, 9 seconds ago.
fn in_the_middle() -> Snapshot {
    let mut snapshot = under_way();
    snapshot.ledger.restart.as_mut().unwrap().members[2].since = Time(91_000);
    snapshot
}

fn joining() -> Waiting {
    waits(Some("logs-1"), Code::Joining, "logs-1 has not joined yet")
}

const ESTIMATE: &str = "about 3 minutes left, estimated from 1 of 3 nodes";

#[test]
fn it_stands_beside_what_is_waited_for() {
    let report = shown(&in_the_middle(), &[joining()]);
    assert_eq!(report.estimate.as_deref(), Some(ESTIMATE));
    let message = format!("logs-1 has not joined yet; {ESTIMATE}");
    assert_eq!(report.message, Some(message));
}

#[test]
fn what_passes_by_itself_is_part_of_the_pace_and_what_needs_somebody_is_not() {
    let mut snapshot = in_the_middle();
    snapshot.ledger.restart.as_mut().unwrap().members[1].step = crate::MemberStep::Scheduled;
    let of = |code| -> Report { shown(&snapshot, &[waits(Some("logs-1"), code, "waits")]) };
    let yellow = of(Code::Predicate(Predicate::Yellow));
    assert_eq!(yellow.message.as_deref(), Some("waits"), "a rule stands for itself");
    assert_eq!(yellow.estimate.as_deref(), Some(ESTIMATE));
    for code in [Code::Paused, Code::ManagerUnreachable, Code::UnreplicatedIndex, Code::Debts] {
        assert_eq!(of(code).estimate, None, "{code:?}");
    }
}

#[test]
fn it_is_made_from_the_ledger_alone_and_survives_it_being_read_again() {
    let mut snapshot = in_the_middle();
    let text = serde_json::to_string(&snapshot.ledger).unwrap();
    snapshot.ledger = serde_json::from_str(&text).unwrap();
    assert_eq!(shown(&snapshot, &[joining()]).estimate.as_deref(), Some(ESTIMATE));
    let old = text.replace("\"began\":\"1970-01-01T00:00:01.000Z\",", "");
    assert_ne!(old, text);
    snapshot.ledger = serde_json::from_str(&old).unwrap();
    assert_eq!(shown(&snapshot, &[joining()]).estimate, None, "of a version before");
}

#[test]
fn what_a_node_waits_for_is_said_of_it_in_the_same_words() {
    let mut snapshot = in_the_middle();
    snapshot.ledger.restart.as_mut().unwrap().members[1].step = crate::MemberStep::Scheduled;
    let rule = waits(Some("logs-0"), Code::Predicate(Predicate::OneMaster), "logs-0 waits");
    let turn = waits(Some("logs-1"), Code::NotItsTurn, "logs-1 waits");
    for node in shown(&snapshot, &[rule.clone(), turn.clone()]).nodes {
        let waiting = if node.name == "logs-0" { &rule } else { &turn };
        assert_eq!(node.message.as_deref(), Some(&*waiting.message));
        let word = waiting.code.blocks().then(|| waiting.code.as_str());
        assert_eq!(node.blocked_by.as_deref(), word);
    }
}
