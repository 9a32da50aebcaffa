//! `Ready`, `Reconciling` and `Stalled`.

use super::{condition, shown, three, under_way, waits};
use crate::{Code, HistoryEntry, Outcome, Report, Request, Strategy, Time};

/// `kubectl wait` and GitOps tools read these three.
pub(super) fn standard(report: &Report) -> [(&str, &str); 3] {
    ["Ready", "Reconciling", "Stalled"].map(|kind| {
        let (status, reason, _) = condition(report, kind);
        (status, reason)
    })
}

#[test] // proves RESTART-101
fn ready_says_that_all_is_done_and_otherwise_who_has_to_do_something() {
    let idle = [waits(Some("logs-0"), Code::Idle, "nothing was asked")];
    assert_eq!(
        standard(&shown(&three(), &idle)),
        [("True", "Ready"), ("False", "Ready"), ("False", "Ready")]
    );
    // Under way, or waiting for something that comes by itself.
    assert_eq!(
        standard(&shown(&under_way(), &[])),
        [("False", "Rolling"), ("True", "Rolling"), ("False", "Reconciling")]
    );
    let quorum = [waits(Some("logs-1"), Code::Quorum, "two of three")];
    assert_eq!(
        standard(&shown(&under_way(), &quorum)),
        [("False", "quorum"), ("True", "quorum"), ("False", "Reconciling")]
    );
    // Queued behind nothing yet.
    let mut queued = three();
    queued.ledger.queued = Some(Request { id: "r2".into(), ..Request::default() });
    assert_eq!(standard(&shown(&queued, &idle))[0], ("False", "Queued"));
    // A person has to do something.
    let outage = [waits(Some("logs-1"), Code::NeedsCoordinated, "say so")];
    let code = Code::NeedsCoordinated.as_str();
    assert_eq!(
        standard(&shown(&under_way(), &outage)),
        [("False", code), ("False", "Stalled"), ("True", code)]
    );
    let invalid = Report::refused("invalid_spec", "spec: x".to_owned(), &three().ledger, Time(5));
    assert_eq!(
        standard(&invalid),
        [("False", "invalid_spec"), ("False", "Stalled"), ("True", "invalid_spec")]
    );
}

#[test] // proves RESTART-101
fn a_config_without_its_source_waits_for_a_person() {
    let absent = [waits(Some("logs-1"), Code::SourceAbsent, "Secret logs-1-config is absent")];
    assert_eq!(
        standard(&shown(&under_way(), &absent)),
        [("False", "source_absent"), ("False", "Stalled"), ("True", "source_absent")]
    );
}

#[test] // proves RESTART-101
fn ready_says_how_a_restart_ended_that_did_not_do_what_was_requested() {
    let entry = |id: &str, outcome, reason: &str| HistoryEntry {
        id: id.into(),
        strategy: Strategy::Rolling,
        outcome,
        reason: reason.into(),
        started: Time(1_000),
        began: Some(Time(1_000)),
        seconds: 60,
        nodes: 3,
        steps: Default::default(),
        skipped_rules: vec![],
        allowed_outage: false,
    };
    let ended = |outcome, reason: &str| {
        let mut snapshot = three();
        snapshot.ledger.history =
            vec![entry("r0", Outcome::Aborted, ""), entry("r1", outcome, reason)];
        let report = shown(&snapshot, &[]);
        let (status, reason, message) = condition(&report, "Ready");
        let others = ["Reconciling", "Stalled"].map(|kind| condition(&report, kind).0);
        assert_eq!(others, ["False", "False"]);
        (status.to_owned(), reason.to_owned(), message.to_owned())
    };
    let is =
        |reason: &str, message: &str| ("True".to_owned(), reason.to_owned(), message.to_owned());
    let done = "all requests are done, and there are no debts";
    assert_eq!(ended(Outcome::Done, "the cluster is not green yet"), is("Ready", done));
    let message =
        "the last restart, r1, ended as aborted: a person has cancelled it; there are no debts";
    assert_eq!(ended(Outcome::Aborted, "a person has cancelled it"), is("RestartAborted", message));
    let message =
        "the last restart, r1, ended as rolledBack: logs-2 did not start; there are no debts";
    assert_eq!(
        ended(Outcome::RolledBack, "logs-2 did not start"),
        is("RestartRolledBack", message)
    );
    let message = "the last restart, r1, ended as interfered; there are no debts";
    assert_eq!(ended(Outcome::Interfered, ""), is("RestartInterfered", message));
    let message = "the last restart, r1, ended as superseded; there are no debts";
    assert_eq!(ended(Outcome::Superseded, ""), is("RestartSuperseded", message));
}
