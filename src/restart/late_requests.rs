//! Requests that arrive after the end of their restart: for how long they may come, and the changes on the
//! engine that they have made. Such a change is ours and no ledger entry explains it; changes without our name
//! are never among them.

use super::{Allocation, HistoryEntry, Ledger, Marker, Record, Snapshot, Time};

/// For how long after a restart's end the engine is still observed, in milliseconds: a request of
/// ours that was slow may arrive late.
pub(crate) const LATE_REQUEST_WINDOW: u64 = 60_000;

/// True if a restart ended a short while ago.
pub(crate) fn ended_recently(snapshot: &Snapshot) -> bool {
    last_end(&snapshot.ledger).is_some_and(|ended| snapshot.now.since(ended) < LATE_REQUEST_WINDOW)
}

/// When the last restart ended.
pub(crate) fn last_end(ledger: &Ledger) -> Option<Time> {
    ledger.history.last().map(HistoryEntry::ended)
}

/// True if the engine has a change that a late request of ours made. `cluster` is the SearchCluster,
/// as `namespace/name`.
pub fn has_leftovers(
    cluster: &str,
    ledger: &Ledger,
    allocation: &Allocation,
    records: &[Record],
) -> bool {
    let is_marked = allocation.marker.as_ref().is_some_and(|marker| is_ours(marker, cluster));
    is_marked && ledger.debts.allocation.is_none()
        || records.iter().any(|record| is_left_over(record, ledger, cluster))
}

/// True if a marker was set for this SearchCluster.
pub(crate) fn is_ours(marker: &Marker, cluster: &str) -> bool {
    marker.cluster == cluster
}

/// The reason of a shutdown record for a restart of this SearchCluster: others of the same engine may
/// have restarts with the same id.
pub(crate) fn record_reason(cluster: &str, restart: &str) -> String {
    format!("{cluster} {restart}")
}

/// Id of the restart that a record of this SearchCluster is for: the end of [`record_reason`], or the
/// whole reason, as older versions wrote it. A reason of another SearchCluster is no id.
pub(crate) fn restart_of<'r>(record: &'r Record, cluster: &str) -> &'r str {
    let own = record.reason.strip_prefix(cluster).and_then(|rest| rest.strip_prefix(' '));
    own.unwrap_or(&record.reason)
}

/// True if a restart of this SearchCluster has made this shutdown record, and no debt is about its node.
pub(crate) fn is_left_over(record: &Record, ledger: &Ledger, cluster: &str) -> bool {
    record.is_restart && ledger.has_handled(restart_of(record, cluster)) && !is_owed(record, ledger)
}

/// True if this record announces a restart that does not belong to this SearchCluster.
pub(crate) fn is_of_another(record: &Record, ledger: &Ledger, cluster: &str) -> bool {
    record.is_restart
        && !ledger.has_handled(restart_of(record, cluster))
        && !is_owed(record, ledger)
}

fn is_owed(record: &Record, ledger: &Ledger) -> bool {
    ledger.debts.records.iter().any(|debt| debt.node_id == record.node_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllocationBefore, AllocationDebt, Debts, RecordDebt};

    fn marked_by(cluster: &str) -> Allocation {
        let marker = Marker {
            cluster: cluster.into(),
            restart: "r1".into(),
            before: AllocationBefore::default(),
        };
        Allocation { marker: Some(marker), ..Allocation::default() }
    }

    fn record(is_restart: bool, reason: &str) -> Record {
        let (node_id, reason) = ("a".into(), reason.into());
        Record { node_id, is_restart, reason, complete: true, preparing: Vec::new() }
    }

    #[test]
    fn only_what_carries_our_name_and_is_owed_to_nobody_is_left_over() {
        let ledger = Ledger { handled: vec!["r1".into()], ..Ledger::default() };
        let look = |ledger: &Ledger, allocation: &Allocation, records: &[Record]| {
            has_leftovers("search/logs", ledger, allocation, records)
        };
        let none = Allocation::default();
        let theirs = AllocationBefore { persistent: Some("primaries".into()), transient: None };
        let theirs = Allocation { setting: theirs, ..Allocation::default() };

        assert!(look(&ledger, &marked_by("search/logs"), &[]));
        for ours in ["search/logs r1", "r1"] {
            assert!(look(&ledger, &none, &[record(true, ours)]), "{ours}");
        }
        for untouched in [&none, &theirs, &marked_by("search/other")] {
            assert!(!look(&ledger, untouched, &[]), "{untouched:?}");
        }
        let others = ["a person's", "search/other r1", "search/logs-2 r1"];
        let others = others.map(|reason| record(true, reason));
        for untouched in others.into_iter().chain([record(false, "search/logs r1")]) {
            assert!(!look(&ledger, &none, std::slice::from_ref(&untouched)), "{untouched:?}");
        }

        let debt = AllocationDebt {
            restart: "r1".into(),
            before: AllocationBefore::default(),
            holders: Vec::new(),
        };
        let record_debt = RecordDebt {
            node_id: "a".into(),
            node: "logs-0".into(),
            pod_uid: "uid".into(),
            restart: "r1".into(),
        };
        let debts =
            Debts { allocation: Some(debt), records: vec![record_debt], ..Debts::default() };
        let owed = Ledger { debts, ..ledger };
        assert!(!look(&owed, &marked_by("search/logs"), &[record(true, "search/logs r1")]));
    }
}
