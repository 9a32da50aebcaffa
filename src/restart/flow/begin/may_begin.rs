//! Conditions that block all nodes of a restart.

use crate::blocker::{Check, refuse};
use crate::context::Context;
use crate::flow::debts::is_waited_for;
use crate::flow::engine::voting::is_exclusion_due;
use crate::flow::observed::not_held;
use crate::rules::list_names;
use crate::{Action, Code, Ledger, Pod, Restart, Share, Strategy};

/// Passes if the next nodes of this restart may get a slot.
pub(crate) fn may_begin(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Check {
    may_begin_at_all(context, ledger, restart)?;
    if owes_the_engine(context, ledger) {
        return refuse(Code::Debts, "an earlier change must be undone first (status.debts)");
    }
    let under_way = restart.members.iter().filter(|member| member.is_under_way());
    let names: Vec<&str> = under_way.map(|member| member.node.as_str()).collect();
    if restart.request.strategy == Strategy::Rolling && !names.is_empty() {
        let (are, then) = match (names.len(), context.policy.max_unavailable) {
            (1, Share::Nodes(1)) => ("is", "one node at a time"),
            (1, _) => ("is", "the next go when it is back"),
            _ => ("are", "the next go when all of them are back"),
        };
        return refuse(
            Code::AnotherInProgress,
            format!("{} {are} under way; {then}", list_names(&names)),
        );
    }
    Ok(())
}

/// Passes unless a condition blocks every node, even nodes that have failed.
pub(crate) fn may_begin_at_all(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Check {
    let now = context.snapshot.now;
    if let Some(at) = restart.request.not_before.filter(|at| now < *at) {
        return refuse(Code::NotBefore, format!("the request says not before {at}"));
    }
    not_held(context, &restart.request)?;
    if let Some(other) = context.snapshot.cluster.overlaps.first() {
        return refuse(
            Code::OverlappingSelectors,
            format!(
                "the SearchCluster {other} selects pods of this one; correct one selector, or delete one of them"
            ),
        );
    }
    let owed = |ledger: &Ledger| ledger.debts.start.iter().any(|debt| is_waited_for(context, debt));
    if owed(ledger) || owed(&context.snapshot.ledger) {
        return refuse(Code::Debts, "an earlier change must be undone first (status.debts)");
    }
    Ok(())
}

/// Passes unless there is a start debt for this very pod.
pub(super) fn is_owed_no_start(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> Check {
    let is_owed = |ledger: &Ledger| ledger.debts.start.iter().any(|debt| debt.pod_uid == pod.uid);
    if is_owed(ledger) || is_owed(&context.snapshot.ledger) {
        return refuse(Code::Debts, format!("{} is started first (status.debts)", pod.node));
    }
    Ok(())
}

/// True if a change on the engine must be undone because no member under way needs it any more.
pub(super) fn owes_the_engine(context: &Context<'_>, ledger: &Ledger) -> bool {
    let allocation = ledger.debts.allocation.as_ref();
    allocation.is_some_and(|debt| debt.holders.is_empty()) || is_exclusion_due(context, ledger)
}

/// The action that adds our finalizer to the SearchCluster, unless it has it. This action comes before any
/// action that would have to be undone.
pub(crate) fn missing_finalizer(context: &Context<'_>) -> Option<Action> {
    (!context.snapshot.cluster.finalizer).then_some(Action::AddFinalizer)
}
