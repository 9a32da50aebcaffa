//! Another client deletes the shutdown record of a node before its stop.

use super::scenario::moment;
use crate::{Action, Code, Plan, Reason, plan};

/// The plan this long after logs-2 took its slot, if its record is not there.
fn planned(after: u64, is_flushed: bool) -> Plan {
    let script = ["three nodes", "records on", "request rolling r1 nodes logs-2", "run 400ms"];
    let (mut snapshot, policy) = moment(&script);
    let since = snapshot.ledger.under_way().next().expect("logs-2 has its slot").since;
    snapshot.now = since.plus(after);
    snapshot.flushed = is_flushed.then(|| "logs-2".to_owned()).into_iter().collect();
    let engine = snapshot.engine.as_mut().expect("it answers");
    engine.records = Ok(Some(Vec::new()));
    plan(&snapshot, &policy)
}

#[test] // proves RESTART-125
fn a_record_that_is_never_there_is_deleted_by_another_client() {
    let told = "another client deletes the shutdown record of logs-2 whenever it is set: find that client and pause it";
    // It may be set for the first time, or only just.
    for (after, is_flushed, is_told) in
        [(0, false, false), (20_000, false, false), (9_000, true, false), (20_000, true, true)]
    {
        let plan = planned(after, is_flushed);
        let is_set = |action: &Action| matches!(action, Action::PutRecord { .. });
        assert!(plan.actions.iter().any(is_set), "it is set in any case: {plan:?}");
        let event = plan.actions.iter().find_map(|action| match action {
            Action::RecordEvent(event) => Some((event.reason, event.message.as_str())),
            _ => None,
        });
        let waits = plan.waiting.iter().find(|waiting| waiting.node.as_deref() == Some("logs-2"));
        let waits = waits.map(|waiting| waiting.code);
        let code = if is_told { Code::ForeignController } else { Code::Preparing };
        // A node that begins to drain waits for nothing.
        assert_eq!(waits, is_flushed.then_some(code), "{after} {is_flushed}: {plan:?}");
        assert_eq!(event, is_told.then_some((Reason::ForeignController, told)));
    }
}
