//! Every version of the SearchCluster, by a watch: counts the writes that changed the ledger, not
//! only the rest of the status.

use std::fs;
use std::path::PathBuf;

use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Ledger;
use tempfile::TempDir;

use super::super::fixture::Fixture;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::process::Process;
use crate::support::wait::eventually;

const NAME: &str = "watch";

/// A watch; ends with its guard.
pub(super) struct Ledgers {
    _watch: Process,
    directory: TempDir,
}

impl Ledgers {
    /// Starts with the current version.
    pub(super) fn follow(fixture: &Fixture) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let kubectl = part("STAYPUT_KUBE").expect("it runs the cluster");
        let kubeconfig = fixture.admin().kubeconfig();
        let (kubectl, kubeconfig) = (kubectl.to_str(), kubeconfig.to_str());
        let line = [
            kubectl.expect("UTF-8"),
            "kubectl",
            "--kubeconfig",
            kubeconfig.expect("UTF-8"),
            "--namespace=search",
            "get",
            "searchcluster",
            "logs",
            "--watch",
            "--output=json",
        ];
        let watch = Process::start(NAME, directory.path(), &line);
        let ledgers = Self { _watch: watch, directory };
        eventually("the watch shows the present", || (!ledgers.seen().is_empty()).then_some(()));
        ledgers
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join(format!("{NAME}.log"))
    }

    fn seen(&self) -> Vec<Ledger> {
        let text = fs::read(self.log()).expect("a log");
        let all = serde_json::Deserializer::from_slice(&text).into_iter::<SearchCluster>();
        // The last line may not be complete yet.
        let whole = all.map_while(Result::ok);
        whole.map(|cluster| cluster.status.unwrap_or_default().ledger).collect()
    }

    /// How often the ledger changed, up to the current version.
    pub(super) fn end(self, fixture: &Fixture) -> usize {
        let now = fixture.logs();
        let now: SearchCluster = serde_json::from_value(now).expect("a SearchCluster");
        let now = now.status.unwrap_or_default().ledger;
        let seen = eventually("the watch has come to the present", || {
            let seen = self.seen();
            (seen.last() == Some(&now)).then_some(seen)
        });
        seen.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}
