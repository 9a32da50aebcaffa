//! Checks if a cluster may be detached now, and what to do first. Changes to undo are commands for a person: the
//! same requests that the reconciler would send. Pure.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::json;
use stayput_engine::{Allocation, record_path, restored};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{REVISION_LABEL, annotation, shell_word};

use crate::format::names_are;
use crate::view::ClusterView;

/// Why a cluster may not be detached now, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "{name} is declared (spec.nodeSets): it owns the StatefulSets {}, which are deleted with it, \
         and all nodes with them. To keep them without a reconciler: `{delete}`; with one: declare \
         another SearchCluster with spec.pods after that",
        sets.join(", ")
    )]
    Declared { name: String, sets: Vec<String>, delete: String },
    #[error(
        "{} kept stopped, and nobody would start them: `{start}` first, and take them out of \
         spec.stopped",
        names_are(nodes)
    )]
    KeptStopped { nodes: Vec<String>, start: String },
    #[error("restart {id} has not ended: wait for it with `{watch}`, or add --cancel")]
    RestartUnderWay { id: String, watch: String },
    #[error(
        "no reconciler works ({why}), so nobody undoes its changes. Start one; or undo them by hand, \
         with ENGINE as the engine's address and ACCESS as curl's options for its credentials:\n\
         {}\nthen remove its finalizer, and try again:\n{remove_finalizer}",
        commands.join("\n")
    )]
    NoReconciler { why: String, commands: Vec<String>, remove_finalizer: String },
}

/// Passes if the cluster may be detached now. `no_reconciler` has the reason if no reconciler works.
///
/// # Errors
/// Why the cluster may not be detached now.
pub(crate) fn may(
    cluster: &SearchCluster,
    view: &ClusterView,
    no_reconciler: Option<&str>,
    cancel: bool,
) -> Result<(), Refusal> {
    if !cluster.spec.node_sets.is_empty() {
        let name = view.name.clone();
        let sets = cluster.spec.node_sets.iter().map(|set| format!("{name}-{}", set.name));
        let delete = view.kubectl(&format!("delete searchcluster {name} --cascade=orphan"));
        return Err(Refusal::Declared { sets: sets.collect(), name, delete });
    }
    let kept = view.pods.iter().filter(|pod| view.is_kept_stopped(pod));
    let nodes: Vec<String> = kept.map(|pod| pod.node.clone()).collect();
    if !nodes.is_empty() {
        let start = view.command_for("start", &nodes);
        return Err(Refusal::KeptStopped { nodes, start });
    }
    if let Some(why) = no_reconciler {
        // Without our finalizer nothing is owed, or a person has taken it off.
        let ours = cluster.finalizers().iter().position(|one| one == annotation::FINALIZER);
        return ours.map_or(Ok(()), |at| {
            Err(Refusal::NoReconciler {
                why: why.to_owned(),
                commands: commands(view),
                remove_finalizer: remove_finalizer(view, at),
            })
        });
    }
    let under_way = view.restart().map(|restart| restart.request.id.clone());
    let requested = || {
        view.requested().map(|request| request.map_or_else(|_| "(unreadable)".into(), |one| one.id))
    };
    let open =
        under_way.or_else(|| view.queued().map(|request| request.id.clone())).or_else(requested);
    match open {
        Some(id) if !cancel => Err(Refusal::RestartUnderWay { id, watch: view.command("watch") }),
        Some(_) | None => Ok(()),
    }
}

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
    let mut all: Vec<String> = starts.chain(labels_back(view)).collect();
    let curl = |method: &str, path: &str| format!("curl $ACCESS -X {method} \"$ENGINE{path}\"");
    if let Some(debt) = &debts.allocation {
        let before = Allocation {
            persistent: debt.before.persistent.clone(),
            transient: debt.before.transient.clone(),
            ..Allocation::default()
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

/// A command for each pod whose label is ahead of it. Its operator would take the pod for updated.
fn labels_back(view: &ClusterView) -> impl Iterator<Item = String> {
    view.pods.iter().filter_map(|pod| {
        let patch = json!({ "metadata": {
            "labels": { REVISION_LABEL: pod.actual_revision.as_ref()? },
            "annotations": { annotation::ACTUAL_REVISION: null },
        }});
        let patch = shell_word(&patch.to_string()).into_owned();
        Some(view.kubectl(&format!("patch pod {} --type merge -p {patch}", pod.name)))
    })
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
