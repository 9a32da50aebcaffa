//! Writes the status: the ledger, which decisions are made from, and the report for people. A report beside
//! an unchanged ledger is written rarely.

mod difference;

use std::collections::BTreeMap;
use std::time::Duration;

use json_patch::PatchOperation;
use kube::api::ObjectMeta;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_kube_access::patch_operations::{has_uid, place, replace};
use stayput_restart::{Condition, Ledger, Report, Time, debts_due};
use tokio::time::Instant;

use crate::apiserver::{Apiserver, namespaced_name, read_again};
use crate::clusters::asks_for_the_same;
use crate::failure::Failure;
use crate::metrics::Gauges;
use crate::status::difference::difference;

/// Number of attempts of a write, if other clients write in between.
const WRITE_ATTEMPTS: u32 = 5;

/// Writes the status of one SearchCluster.
pub(super) struct StatusWriter {
    api: Apiserver,
    last_write: Option<Instant>,
    /// The status as our last write left it: its form is known to the byte.
    written: Option<SearchClusterStatus>,
}

/// Result of a report.
pub(super) enum Reported {
    /// The report was written; the SearchCluster as the apiserver returned it.
    Written(Box<SearchCluster>),
    /// The report differs from the written one, and is to be written after this time.
    DueIn(Duration),
    /// The report is the written one.
    Unchanged,
}

impl StatusWriter {
    pub(super) fn new(api: Apiserver) -> Self {
        Self { api, last_write: None, written: None }
    }

    /// Writes a status that was decided on the ledger `from`. A resource version alone does not protect it:
    /// `cluster` may be newer than the state that the decision was made from.
    ///
    /// # Errors
    /// [`Failure::StatusOvertaken`] if the ledger is no longer `from`; [`Failure::Apiserver`].
    pub(super) async fn write(
        &mut self,
        cluster: &SearchCluster,
        report: Report,
        from: &Ledger,
        ledger: Ledger,
    ) -> Result<SearchCluster, Failure> {
        if ledger_of(cluster) != *from {
            return Err(Failure::StatusOvertaken);
        }
        let before = cluster.status.as_ref().map(|status| status.report.conditions.as_slice());
        let report = report.since(before.unwrap_or_default(), cluster.metadata.generation);
        let status = SearchClusterStatus {
            observed_generation: cluster.metadata.generation,
            report,
            ledger,
        };
        let mut change = self.change(cluster, &status)?;
        let mut whole = SearchCluster { status: Some(status), ..cluster.clone() };
        // The apiserver writes these itself.
        whole.metadata.managed_fields = None;
        let (namespace, name) = namespaced_name(&cluster.metadata);
        let clusters = self.api.objects::<SearchCluster>(namespace);
        for attempt in 0..WRITE_ATTEMPTS {
            let answer = match &change {
                Some(change) => {
                    let patch = on_version(&whole.metadata, change);
                    clusters.patch_subresource("status", name, patch).await
                }
                None => clusters.replace_status(name, &whole).await,
            };
            match answer {
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    // The write may have arrived or not.
                    self.written = None;
                    return Err(error.into());
                }
                Ok(written) => {
                    self.last_write = Some(Instant::now());
                    self.written.clone_from(&written.status);
                    return Ok(written);
                }
            }
            // If another client changed only fields that no decision is made from, the decision still holds.
            let live = read_again(&self.api, cluster).await?;
            if !asks_for_the_same(&live, cluster) {
                break;
            }
            whole.metadata.clone_from(&live.metadata);
            // If the apiserver refuses the patch once more, the stored status has another form.
            change = change.filter(|_| attempt == 0 && live.status == cluster.status);
        }
        Err(Failure::StatusOvertaken)
    }

    /// The operations that change the stored status to this one, if its stored form is known: another writer
    /// may have written the same in another form, which must be replaced as a whole.
    fn change(
        &self,
        cluster: &SearchCluster,
        status: &SearchClusterStatus,
    ) -> Result<Option<Vec<PatchOperation>>, Failure> {
        let Some(before) = self.written.as_ref().filter(|_| cluster.status == self.written) else {
            return Ok(None);
        };
        let encode = |status: &SearchClusterStatus| {
            let what = "the status";
            serde_json::to_value(status).map_err(|source| Failure::Encode { what, source })
        };
        Ok(difference(&encode(before)?, &encode(status)?))
    }

    /// Writes the report beside an unchanged ledger, if it is due.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub(super) async fn report(
        &mut self,
        cluster: &SearchCluster,
        report: Report,
        ledger: &Ledger,
    ) -> Result<Reported, Failure> {
        if ledger_of(cluster) != *ledger {
            return Err(Failure::StatusOvertaken);
        }
        let before = cluster.status.as_ref();
        let conditions = before.map(|status| &*status.report.conditions).unwrap_or_default();
        let report = report.since(conditions, cluster.metadata.generation);
        let since_last = self.last_write.map(|last| last.elapsed());
        match due_in(before, &report, cluster.metadata.generation, since_last) {
            None => Ok(Reported::Unchanged),
            Some(Duration::ZERO) => {
                let written = self.write(cluster, report, ledger, ledger.clone()).await?;
                Ok(Reported::Written(Box::new(written)))
            }
            Some(due) => Ok(Reported::DueIn(due)),
        }
    }
}

/// The patch of the status, for this object at this version: another version is a conflict, also if it comes
/// while the patch is applied.
fn on_version(metadata: &ObjectMeta, change: &[PatchOperation]) -> json_patch::Patch {
    let version = metadata.resource_version.as_deref();
    let is_ours = [
        has_uid(metadata.uid.as_deref()),
        replace(place(["metadata", "resourceVersion"]), version),
    ];
    json_patch::Patch(is_ours.into_iter().chain(change.iter().cloned()).collect())
}

/// Least time between two writes of which the second changes the summary of the cluster.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between two writes of which the second changes only details.
const DETAIL_INTERVAL: Duration = Duration::from_secs(30);

/// Time until this report has to be written, if it differs from `before`. `since_last` is the time since the
/// last write of the status.
fn due_in(
    before: Option<&SearchClusterStatus>,
    report: &Report,
    generation: Option<i64>,
    since_last: Option<Duration>,
) -> Option<Duration> {
    // The first status adopts requests that exist already, without acting on them: write it at once.
    let Some(before) = before else { return Some(Duration::ZERO) };
    let interval =
        if before.observed_generation != generation || is_summary_changed(&before.report, report) {
            SUMMARY_INTERVAL
        } else if before.report != *report {
            DETAIL_INTERVAL
        } else {
            return None;
        };
    Some(since_last.map_or(Duration::ZERO, |since| interval.saturating_sub(since)))
}

fn is_summary_changed(before: &Report, now: &Report) -> bool {
    // Every node that goes and comes back changes the pending count and the color. The ledger is written for
    // its slot and its end, and these writes show both.
    let in_a_restart = before.progress.is_some() && now.progress.is_some();
    let conditions = |report: &Report| -> Vec<(String, String, String)> {
        let reason = |one: &Condition| {
            if in_a_restart && one.kind == "Available" { String::new() } else { one.reason.clone() }
        };
        let all = report.conditions.iter();
        all.map(|one| (one.kind.clone(), one.status.clone(), reason(one))).collect()
    };
    // While something blocks, people look at the reasons why nodes wait.
    let blocked_by = |report: &Report| -> Vec<(String, String)> {
        let rows = report.nodes.iter();
        rows.filter_map(|node| Some((node.name.clone(), node.blocked_by.clone()?))).collect()
    };
    let pending = |report: &Report| (report.counts.pending_restart, report.counts.pending_update);
    before.phase != now.phase
        || before.blocked != now.blocked
        || (now.blocked.is_some()
            && (before.message != now.message || blocked_by(before) != blocked_by(now)))
        || before.counts.down != now.counts.down
        || (!in_a_restart && pending(before) != pending(now))
        || conditions(before) != conditions(now)
}

/// The newest known ledger of the SearchCluster; empty without a status.
pub(super) fn ledger_of(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// Numbers of a SearchCluster for the metrics. `certificates`: end of each of its managers' certificates, in
/// seconds since the epoch.
pub(super) fn gauges(
    report: &Report,
    ledger: &Ledger,
    certificates: &BTreeMap<&'static str, u64>,
) -> Gauges {
    Gauges {
        certificates: certificates.clone(),
        blocked: report.blocked.clone(),
        pending_restart: report.counts.pending_restart,
        nodes_down: report.counts.down,
        debts: u32::try_from(debts_due(ledger).len()).unwrap_or(u32::MAX),
        predicates_disabled: report
            .conditions
            .iter()
            .any(|condition| condition.kind == "PredicatesDisabled" && condition.status == "True"),
        restart_under_way: ledger.restart.is_some(),
        allocation_limited: ledger.debts.allocation.is_some(),
        under_way_since: ledger.under_way().map(|member| member.since.0 / 1000).min(),
    }
}

/// The report, with an action that fails repeatedly in it. A rule that blocks keeps its code.
pub(super) fn failing(mut report: Report, failure: &Failure, now: Time) -> Report {
    if report.blocked.is_some() {
        let message = report.message.unwrap_or_default();
        report.message = Some(format!("{message}; in addition, an action fails: {failure}"));
        return report;
    }
    blocked(report, "request_failed", "RequestFailed", failure.to_string(), Until::Later, now)
}

/// The report of a SearchCluster whose pods cannot be listed.
pub(super) fn pods_unlisted(report: Report, message: &str, now: Time) -> Report {
    blocked(report, "pods_unlisted", "PodsUnlisted", message.to_owned(), Until::Later, now)
}

/// End of a blockade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// After a retry, or when something else ends first.
    Later,
    /// After a person has changed something.
    APerson,
}

/// The report of a SearchCluster that is blocked for this reason.
pub(super) fn blocked(
    mut report: Report,
    code: &str,
    reason: &str,
    message: String,
    until: Until,
    now: Time,
) -> Report {
    report.blocked = Some(code.to_owned());
    report.message = Some(message.clone());
    let is_true = |kind: &str| {
        let mut all = report.conditions.iter();
        all.any(|one| one.kind == kind && one.status == "True")
    };
    let is_stalled = until == Until::APerson && !is_true("RestartInProgress");
    let (reconciling, stalled) = if is_stalled { ("False", "True") } else { ("True", "False") };
    let mut changed = vec![("Blocked", "True")];
    // An earlier task for a person stays visible.
    if !is_true("Stalled") {
        changed.extend([("Ready", "False"), ("Reconciling", reconciling), ("Stalled", stalled)]);
    }
    for (kind, status) in changed {
        let condition = Condition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.to_owned(),
            message: message.clone(),
            observed_generation: None,
            last_transition_time: now,
        };
        match report.conditions.iter_mut().find(|known| known.kind == condition.kind) {
            Some(known) => *known = condition,
            None => report.conditions.push(condition),
        }
    }
    report
}

#[cfg(test)]
mod tests;
