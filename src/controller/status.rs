//! Writes the status: the ledger, which decisions are made from, and the report for people.

mod difference;
mod due;

use difference::difference;
use json_patch::PatchOperation;
use tokio::time::{Duration, Instant};

use super::apiserver::Apiserver;
use super::clusters::asks_for_the_same;
use super::failure::Failure;
use super::status_report::ledger_of;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart::{Ledger, Report};

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
        for attempt in 0..WRITE_ATTEMPTS {
            let answer = match &change {
                Some(change) => self.api.change_status(&whole.metadata, change).await,
                None => self.api.write_status(&whole).await,
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
            let live = self.api.cluster_of(cluster).await?;
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
        match due::due_in(before, &report, cluster.metadata.generation, since_last) {
            None => Ok(Reported::Unchanged),
            Some(Duration::ZERO) => {
                let written = self.write(cluster, report, ledger, ledger.clone()).await?;
                Ok(Reported::Written(Box::new(written)))
            }
            Some(due) => Ok(Reported::DueIn(due)),
        }
    }
}
