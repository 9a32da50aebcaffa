//! A phase that is written again whenever it is removed, as a GitOps tool does with its manifests. Such a
//! phase is carried out once and then left alone, so that nobody writes it again.

use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::{Code, Ledger, NodeResult, Pod, Reason, Strategy, annotation};

/// Value of `by` in a request that was a phase on the SearchCluster.
pub(super) const BY_PHASE: &str = "restart-phase";

/// End of a message: the way to request further restarts.
const INSTEAD: &str = "for each further restart, commit stayput.dev/restart-request with a new id";

/// True if a restart of the same phase is under way or in the queue: the phase on the SearchCluster was
/// written again.
pub(super) fn comes_back(ledger: &Ledger, strategy: Strategy) -> bool {
    let under_way = ledger.restart.iter().map(|restart| &restart.request);
    under_way
        .chain(&ledger.queued)
        .any(|request| request.strategy == strategy && request.by.as_deref() == Some(BY_PHASE))
}

/// Records that this phase is not carried out again, and reports it.
pub(super) fn keep(context: &Context<'_>, phase: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::SetKeptPhase(Some(phase.to_owned())));
    let message = why_kept(&context.snapshot.cluster, phase);
    changes.event(None, Reason::InputIgnored, message);
    changes
}

/// Records a phase on the SearchCluster that is older than its status: such a phase is not carried out.
pub(super) fn adopt(phase: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::SetKeptPhase(Some(phase.to_owned())));
    let message =
        format!("The restart-phase {phase} is older than this SearchCluster's status: ignored");
    changes.event(None, Reason::RequestAdopted, message);
    changes
}

/// Forgets a kept phase that nobody writes any more: the next phase is a new request.
pub(super) fn forget(ledger: &Ledger) -> Changes {
    match ledger.kept_phase {
        Some(_) => Changes::of_ledger(LedgerChange::SetKeptPhase(None)),
        None => Changes::default(),
    }
}

/// Message that the phase on the SearchCluster is not carried out again, with the reason.
pub(crate) fn why_kept(cluster: &crate::Cluster, phase: &str) -> String {
    let who = match &cluster.phase_applied_by {
        Some(tool) => format!("{tool} applies it as part of a configuration"),
        None => "it is older than the status, or was written again while its restart was under way"
            .to_owned(),
    };
    format!(
        "the restart-phase {phase} on the SearchCluster is carried out once, not again: {who}; remove \
         it there; {INSTEAD}"
    )
}

/// Reports a phase on a pod that requests nothing: it is part of a configuration, and the pod was restarted
/// before. `None`: the phase requests a restart.
pub(super) fn of_pod(ledger: &Ledger, pod: &Pod) -> Option<Changes> {
    let tool = pod.phase_applied_by.as_ref()?;
    // The result of the last node is in the ledger before it is on its pod.
    let is_to_show = |result: &NodeResult| result.pod_uid == pod.uid;
    let is_to_show = ledger.last_result.as_ref().is_some_and(is_to_show);
    if !is_to_show && !pod.annotations.contains_key(annotation::LAST_RESTART) {
        return None;
    }
    let message = format!(
        "the restart-phase on {} requests nothing: {tool} applies it as part of a configuration, \
         and it was restarted already; remove it there; {INSTEAD} on the SearchCluster",
        pod.node
    );
    let mut changes = Changes::default();
    changes.wait(&pod.uid, Code::Idle, message.clone());
    changes.event(Some(&pod.uid), Reason::InputIgnored, message);
    Some(changes)
}
