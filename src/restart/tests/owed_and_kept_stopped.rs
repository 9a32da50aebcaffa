//! A node that is to be kept stopped while its start is owed.

use super::scenario::moment;
use crate::{Action, StartDebt, plan};
use stayput_api::ConfigChoice;

/// The start may have been sent, and its manager decides on it later than on the stop: it must refuse
/// it then.
#[test] // proves RESTART-82
fn its_stop_has_a_higher_sequence_than_a_start_that_may_be_on_its_way() {
    let (mut snapshot, policy) = moment(&[
        "three nodes",
        "request rolling r1 nodes logs-1",
        "run until done",
        "person stops logs-2",
        "run until logs-2 is stopped",
        "annotate pod logs-2 stopped true",
    ]);
    snapshot.ledger.debts.start.push(StartDebt {
        pod_uid: snapshot.pods[2].uid.clone(),
        node: "logs-2".into(),
        stop_sequence: None,
        sequence: 5,
        config: ConfigChoice::Mounted,
        checksum: None,
        absent_since: None,
        since: Some(snapshot.now),
        update: None,
    });
    let made = plan(&snapshot, &policy);
    let kept = made.actions.iter().find_map(|action| match action {
        Action::WriteLedger(ledger) => ledger.kept_stopped.first().cloned(),
        _ => None,
    });
    assert_eq!(kept.expect("it is kept stopped").sequence, 6);
}
