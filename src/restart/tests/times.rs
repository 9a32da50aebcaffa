//! Leaders whose clocks differ.

use super::scenario::moment;
use crate::{Action, Snapshot, Time, plan};

fn since(snapshot: &Snapshot) -> Vec<Time> {
    snapshot.ledger.under_way().map(|member| member.since).collect()
}

#[test]
fn what_a_leader_with_a_clock_ahead_has_written_counts_from_now() {
    let (mut snapshot, policy) = moment(&["three nodes", "request rolling r1", "run 2s"]);
    let [began] = since(&snapshot)[..] else { panic!("{:?}", snapshot.ledger) };
    // The next leader's clock is an hour behind.
    snapshot.now = Time(began.0 - 3_600_000);
    let written = plan(&snapshot, &policy);
    let Some(Action::WriteLedger(ledger)) = written.actions.first() else { panic!("{written:?}") };
    snapshot.ledger = (**ledger).clone();
    assert_eq!(since(&snapshot), [snapshot.now]);
    let again = plan(&snapshot, &policy);
    assert!(!matches!(again.actions.first(), Some(Action::WriteLedger(_))), "{again:?}");
}
