//! Phases that were on pods before the SearchCluster had a status, such as those of a cluster that is
//! reinstalled or restored from a backup: nobody asks for these restarts now.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::rules::list_names;
use crate::{Ledger, Pod, Reason, annotation};

/// Remembers the pods with a phase that is older than the status, until it is removed, and removes it.
pub(crate) fn adopt_phases(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let marked = context.index.marked_pods();
    let marked = marked.filter(|(_, marks)| marks.phase.is_some());
    if context.snapshot.cluster.has_status {
        if ledger.old_phases.is_empty() {
            return changes;
        }
        let old: Vec<&Pod> =
            marked.map(|(pod, _)| pod).filter(|pod| ledger.old_phases.contains(&pod.uid)).collect();
        let uids: BTreeSet<String> = old.iter().map(|pod| pod.uid.clone()).collect();
        if uids != ledger.old_phases {
            changes.change(LedgerChange::SetOldPhases(uids));
        }
        for pod in old {
            changes.annotate(pod, [(annotation::PHASE, None), (annotation::SHOWN, None)]);
        }
        return changes;
    }
    let old: Vec<&Pod> = marked
        .filter(|(_, marks)| marks.phase != marks.shown_phase())
        .map(|(pod, _)| pod)
        .collect();
    if old.is_empty() {
        return changes;
    }
    let nodes: Vec<&str> = old.iter().map(|pod| pod.node.as_str()).collect();
    let message = format!(
        "The restart-phase on {} is older than this SearchCluster's status: removed, not carried out",
        list_names(&nodes)
    );
    changes.event(None, Reason::RequestAdopted, message);
    let uids = old.iter().map(|pod| pod.uid.clone()).collect();
    changes.change(LedgerChange::SetOldPhases(uids));
    changes
}
