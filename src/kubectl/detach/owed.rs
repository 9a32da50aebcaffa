//! Changes to undo, as commands for a person: the same requests that the reconciler would send.

use std::collections::BTreeMap;

use serde_json::json;
use stayput_engine::{Allocation, record_path, restored};
use stayput_restart::{annotation, shell_word};

use crate::view::ClusterView;

/// One command for each change to undo; a remark if there is none.
pub(crate) fn commands(view: &ClusterView) -> Vec<String> {
    let Some(status) = &view.status else { return vec![NOTHING.to_owned()] };
    let (ledger, debts) = (&status.ledger, &status.ledger.debts);
    let managers: BTreeMap<&str, &str> =
        view.pods.iter().map(|pod| (pod.uid.as_str(), pod.exec_manager.as_str())).collect();
    let mut down: Vec<&str> = ledger.unreleased_pods().collect();
    down.sort_unstable();
    down.dedup();
    let starts = down
        .iter()
        .filter_map(|uid| managers.get(uid))
        .map(|manager| view.kubectl(&format!("exec {manager} start")));
    let mut all: Vec<String> = starts.collect();
    let curl = |method: &str, path: &str| format!("curl $ACCESS -X {method} \"$ENGINE{path}\"");
    if let Some(debt) = &debts.allocation {
        let before = Allocation {
            persistent: debt.before.persistent.clone(),
            transient: debt.before.transient.clone(),
            marker: None,
        };
        all.push(format!(
            "{} -H 'Content-Type: application/json' -d {}",
            curl("PUT", "/_cluster/settings"),
            shell_word(&restored(&before).to_string())
        ));
    }
    // What is no id of a node never came from us.
    let records = debts.records.iter().filter_map(|debt| record_path(&debt.node_id).ok());
    all.extend(records.map(|path| curl("DELETE", &path)));
    if debts.exclusion.is_some() {
        all.push(curl("DELETE", "/_cluster/voting_config_exclusions?wait_for_removal=false"));
    }
    if all.is_empty() {
        all.push(NOTHING.to_owned());
    }
    all
}

const NOTHING: &str = "(the ledger has no debts)";

/// The command that removes our finalizer. The patch is refused if another finalizer is at this
/// place now.
pub(crate) fn remove_finalizer(view: &ClusterView, at: usize) -> String {
    let path = format!("/metadata/finalizers/{at}");
    let patch = json!([
        {"op": "test", "path": path, "value": annotation::FINALIZER},
        {"op": "remove", "path": path},
    ]);
    let patch = shell_word(&patch.to_string()).into_owned();
    view.kubectl(&format!("patch searchcluster {} --type json -p {patch}", view.name))
}
