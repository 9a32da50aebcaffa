//! The status: the ledger, which decisions are made from, and beside it what people should know.

use std::sync::Arc;
use std::time::Duration;

use super::pass::Next;
use super::wait::is_same;
use super::{Worker, chronicle};
use crate::cluster::{Checked, Invalid, SearchCluster, SearchClusterStatus};
use crate::reconciler::apiserver::Failure;
use crate::reconciler::metrics::Shown;
use crate::reconciler::observe::now;
use crate::restart::{self, Condition, Ledger, Report, Snapshot, Time, plan};

/// How often others may write in between before everything is looked at anew.
const SCRIBBLES: u32 = 5;
/// While a spec is invalid: somebody has to change it.
const INVALID: Duration = Duration::from_secs(300);

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
        let written = self.write(cluster, report, ledger.clone()).await?;
        let name = &snapshot.cluster.name;
        self.chronicle.wrote(name, &before, ledger, now(), &self.metrics);
        self.pace.reset();
        Ok(written)
    }

    pub(super) async fn write(
        &mut self,
        cluster: &SearchCluster,
        report: Report,
        ledger: Ledger,
    ) -> Result<Arc<SearchCluster>, Failure> {
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
        Err(Failure::Conflict("its status was written by somebody else".into()))
    }

    /// Writes what people should know, if it is time; how long until it is.
    pub(super) async fn publish(
        &mut self,
        cluster: &Arc<SearchCluster>,
        report: Report,
        ledger: &Ledger,
    ) -> Result<Option<Duration>, Failure> {
        let before = cluster.status.as_ref();
        let report =
            report.since(before.map(|status| &*status.report.conditions).unwrap_or_default());
        match self.publisher.due_in(before, &report, cluster.metadata.generation) {
            Some(Duration::ZERO) => {
                self.write(cluster, report, ledger.clone()).await?;
                Ok(None)
            }
            other => Ok(other),
        }
    }

    pub(super) fn show(&self, report: &Report, ledger: &Ledger) {
        let many = chronicle::debts_due(ledger);
        let shown = Shown {
            blocked: report.blocked.clone(),
            pending_restart: report.counts.pending_restart,
            debts: u32::try_from(many).unwrap_or(u32::MAX),
        };
        self.metrics.show(&self.name(), Some(shown));
    }

    /// A spec that cannot be used: the status says why, and nothing is done.
    pub(super) async fn refuse(
        &mut self,
        cluster: &Arc<SearchCluster>,
        faults: &[Invalid],
    ) -> Next {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let ledger =
            cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default();
        let report = Report::invalid(&faults, &ledger, now());
        self.show(&report, &ledger);
        match self.publish(cluster, report, &ledger).await {
            Ok(due) => Next::after(due.unwrap_or(INVALID)),
            Err(failure) => {
                tracing::warn!(cluster = self.name(), "the status cannot be written: {failure}");
                self.look_up().await;
                Next::after(self.pace.failed())
            }
        }
    }
}

/// The report with what keeps failing in it, unless a rule is in the way anyway.
pub(super) fn failing(mut report: Report, failure: &Failure, now: Time) -> Report {
    if report.blocked.is_some() {
        return report;
    }
    report.blocked = Some("request_failed".into());
    report.message = Some(failure.to_string());
    report.conditions.retain(|condition| condition.kind != "Blocked");
    report.conditions.push(Condition {
        kind: "Blocked".into(),
        status: "True".into(),
        reason: "RequestFailed".into(),
        message: failure.to_string(),
        last_transition_time: now,
    });
    report
}
