//! The status: the ledger, which decisions are made from, and beside it what people should know.

use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use super::charter::owes;
use super::pass::Next;
use super::wait::is_same;
use crate::cluster::{Checked, SearchCluster, SearchClusterStatus};
use crate::controller::apiserver::Failure;
use crate::controller::metrics::Shown;
use crate::controller::observe::now;
use stayput_restart::{
    self as restart, Action, Condition, Ledger, Policy, Report, Snapshot, Time, annotation, plan,
};

/// How often others may write in between before everything is looked at anew.
const SCRIBBLES: u32 = 5;
/// While a spec is invalid: somebody has to change it.
const INVALID: Duration = Duration::from_secs(300);
/// While the pods cannot be listed: the watch tries again by itself.
const UNLISTED: Duration = Duration::from_secs(30);

impl Worker {
    /// Writes the ledger, and beside it what the next plan is going to wait for.
    pub(super) async fn write_ledger(
        &mut self,
        cluster: &Arc<SearchCluster>,
        snapshot: &mut Snapshot,
        ledger: &Ledger,
        checked: &Checked,
    ) -> Result<Arc<SearchCluster>, Failure> {
        let before = std::mem::replace(&mut snapshot.ledger, ledger.clone());
        snapshot.cluster.has_status = true;
        let next = plan(snapshot, &checked.policy);
        let report = restart::report(snapshot, &checked.policy, &next);
        let report = self.charter.mark(report, snapshot.now);
        let written = self.write(cluster, report, &before, ledger.clone()).await?;
        // As it was taken: decisions are compared with what is written there.
        snapshot.ledger = held(&written);
        let name = &snapshot.cluster.name;
        self.chronicle.wrote(name, &before, ledger, now(), &self.metrics);
        self.pace.reset();
        Ok(written)
    }

    /// Writes a status that was made from the ledger `from`. A version alone does not protect it:
    /// what is known of the SearchCluster may be newer than what the decision was made from.
    pub(super) async fn write(
        &mut self,
        cluster: &SearchCluster,
        report: Report,
        from: &Ledger,
        ledger: Ledger,
    ) -> Result<Arc<SearchCluster>, Failure> {
        if held(cluster) != *from {
            return Err(overtaken());
        }
        let before = cluster.status.as_ref().map(|status| status.report.conditions.as_slice());
        let report = report.since(before.unwrap_or_default());
        let status = SearchClusterStatus {
            observed_generation: cluster.metadata.generation,
            report,
            ledger,
        };
        let mut whole = SearchCluster { status: Some(status), ..cluster.clone() };
        for _ in 0..SCRIBBLES {
            match self.api.write_status(&whole).await {
                Err(Failure::Conflict(_)) => {}
                written => {
                    self.publisher.note();
                    return Ok(self.take(written?));
                }
            }
            // Somebody may have written what no decision is made from: then this one still stands.
            let (namespace, name) = self.key.clone();
            let live = self.api.cluster(&namespace, &name).await?;
            let stands = is_same(&live, cluster);
            whole.metadata.clone_from(&live.metadata);
            self.take(live);
            if !stands {
                break;
            }
        }
        Err(overtaken())
    }

    /// Writes what people should know, if it is time; how long until it is.
    pub(super) async fn publish(
        &mut self,
        cluster: &Arc<SearchCluster>,
        report: Report,
        ledger: &Ledger,
    ) -> Result<Option<Duration>, Failure> {
        if held(cluster) != *ledger {
            return Err(overtaken());
        }
        let before = cluster.status.as_ref();
        let report =
            report.since(before.map(|status| &*status.report.conditions).unwrap_or_default());
        match self.publisher.due_in(before, &report, cluster.metadata.generation) {
            Some(Duration::ZERO) => {
                self.write(cluster, report, ledger, ledger.clone()).await?;
                Ok(None)
            }
            other => Ok(other),
        }
    }

    pub(super) fn show(&self, report: &Report, ledger: &Ledger) {
        let shown = Shown {
            blocked: report.blocked.clone(),
            pending_restart: report.counts.pending_restart,
            debts: u32::try_from(restart::debts_due(ledger).len()).unwrap_or(u32::MAX),
            disabled: report.conditions.iter().any(|condition| {
                condition.kind == "PredicatesDisabled" && condition.status == "True"
            }),
        };
        self.metrics.show(&self.name(), Some(shown));
    }

    /// A spec that cannot be used: the status says why, and nothing is done.
    pub(super) async fn refuse(&mut self, cluster: &Arc<SearchCluster>) -> Next {
        let ledger = held(cluster);
        let report = Report::invalid(&self.charter.faults, &ledger, now());
        self.helpless(cluster, report, &ledger, INVALID).await
    }

    /// While the pods cannot be listed: the status says why, and nothing is done.
    pub(super) async fn grope(&mut self, cluster: &Arc<SearchCluster>, why: &str) -> Next {
        // With a first status, what was asked before it would no longer be told from what is new.
        let Some(status) = &cluster.status else { return Next::after(UNLISTED) };
        let (before, ledger) = (status.report.clone(), status.ledger.clone());
        let report = blocked(before, "pods_unlisted", "PodsUnlisted", why.to_owned(), now());
        self.helpless(cluster, report, &ledger, UNLISTED).await
    }

    /// Shows why nothing can be done, and lets go of what is to be deleted if nothing is owed.
    async fn helpless(
        &mut self,
        cluster: &Arc<SearchCluster>,
        report: Report,
        ledger: &Ledger,
        again: Duration,
    ) -> Next {
        let finalizers = cluster.metadata.finalizers.iter().flatten();
        let is_held = finalizers.into_iter().any(|name| name == annotation::FINALIZER);
        if cluster.metadata.deletion_timestamp.is_some() && is_held && !owes(cluster) {
            let (mut cluster, policy) = (Arc::clone(cluster), Policy::default());
            let let_go = self.carry_out(&[&Action::RemoveFinalizer], &mut cluster, &policy).await;
            if let_go.is_err() {
                self.look_up().await;
                return Next::after(self.pace.failed());
            }
            return Next::after(again);
        }
        self.show(&report, ledger);
        match self.publish(cluster, report, ledger).await {
            Ok(due) => Next::after(due.unwrap_or(again)),
            Err(failure) => {
                tracing::warn!("the status cannot be written: {failure}");
                self.look_up().await;
                Next::after(self.pace.failed())
            }
        }
    }
}

/// The ledger in the SearchCluster as it is known; without a status an empty one.
fn held(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

fn overtaken() -> Failure {
    Failure::Conflict("its status was written by somebody else".into())
}

/// The report with what keeps failing in it, beside the rule that is in the way anyway.
pub(super) fn failing(mut report: Report, failure: &Failure, now: Time) -> Report {
    if report.blocked.is_some() {
        let message = report.message.unwrap_or_default();
        report.message = Some(format!("{message}; besides, what was tried fails: {failure}"));
        return report;
    }
    blocked(report, "request_failed", "RequestFailed", failure.to_string(), now)
}

/// The report with this in the way.
pub(super) fn blocked(
    mut report: Report,
    code: &str,
    reason: &str,
    message: String,
    now: Time,
) -> Report {
    report.blocked = Some(code.to_owned());
    report.message = Some(message.clone());
    let condition = Condition {
        kind: "Blocked".into(),
        status: "True".into(),
        reason: reason.to_owned(),
        message,
        last_transition_time: now,
    };
    match report.conditions.iter_mut().find(|known| known.kind == condition.kind) {
        Some(known) => *known = condition,
        None => report.conditions.push(condition),
    }
    report
}
