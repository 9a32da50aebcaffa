//! Checks the rules right before a stop, on the newest observation.

use super::mounted::not_mounted;
use super::update::may_be_replaced;
use crate::blocker::{Check, refuse};
use crate::context::Context;
use crate::flow::engine::{
    allocation::is_tight,
    is_to_be_flushed,
    record::{prepares, records},
};
use crate::flow::observed::{describe_zone, expected_now};
use crate::{Blocker, Code, Ledger, Member, MemberStep, Pod, Restart};

/// Passes if a member may be stopped. For a node that is restarted with its zone, all nodes of the
/// zone must be ready to be stopped. Once one of them is stopped this is not checked again, and
/// each of the others is stopped as soon as it can be.
pub(super) fn may_stop(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    pod: &Pod,
) -> Check {
    if restart.request.goes_as_a_whole() {
        context.zone_may_stop(|| zone_may_stop(context, ledger, restart))?;
    }
    may_stop_alone(context, ledger, restart, pod)
}

/// Reason why a member must give its slot back: a rule no longer allows its stop, or in a zone that of any of
/// its nodes; or the node hangs. Copies that are only moving are ready soon, also while allocation is
/// limited: they are waited for until `is_late`.
pub(super) fn why_not(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    pod: &Pod,
    is_late: bool,
) -> Option<Blocker> {
    let evaluation = context.stop_evaluation(ledger).ok()?;
    let says_no = |pod: &Pod| {
        if let Err(blocker) = may_be_replaced(context, restart, pod) {
            return Some(blocker);
        }
        let blocker = evaluation.check_before_stop(pod, &restart.request).err()?;
        let by_rule = blocker.code.passes_by_itself()
            || blocker.code == Code::UnreplicatedIndex
            || evaluation.is_silent(&pod.uid);
        let waits = !is_late && evaluation.is_only_moving(&blocker);
        (by_rule && !waits).then_some(blocker)
    };
    if restart.request.goes_as_a_whole() && !has_begun(context, restart) {
        let members = restart.members.iter().filter(|member| member.step == MemberStep::Restarting);
        return members.filter_map(|member| context.index.pod(&member.pod_uid)).find_map(says_no);
    }
    says_no(pod)
}

fn may_stop_alone(context: &Context<'_>, ledger: &Ledger, restart: &Restart, pod: &Pod) -> Check {
    context.stop_evaluation(ledger)?.check_before_stop(pod, &restart.request)
}

fn zone_may_stop(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Check {
    if has_begun(context, restart) {
        return Ok(());
    }
    for member in restart.members.iter().filter(|member| member.step == MemberStep::Restarting) {
        until_ready_to_stop(context, ledger, restart, member).map_err(|blocker| Blocker {
            code: blocker.code,
            message: format!(
                "{} is stopped as a whole, and {} cannot be yet: {}",
                describe_zone(restart),
                member.node,
                blocker.message
            ),
        })?;
    }
    Ok(())
}

/// True if a node of the zone has taken its stop.
fn has_begun(context: &Context<'_>, restart: &Restart) -> bool {
    restart.members.iter().any(|member| {
        let manager = context.index.manager(&member.pod_uid);
        member.stop_sequence > 0
            && manager.is_ok_and(|manager| manager.sequence >= member.stop_sequence)
    })
}

/// Passes if everything for the stop of a member is ready.
fn until_ready_to_stop(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Check {
    let Some(pod) = context.index.pod(&member.pod_uid) else {
        return refuse(Code::PodGone, "its pod is gone, and the one in its place is not back");
    };
    let manager = context.preflight(pod)?;
    let expected = expected_now(pod, manager)?;
    if expected != member.expected || manager.mounted != expected {
        return refuse(Code::ConfigNotMounted, not_mounted(pod));
    }
    let debts = &ledger.debts;
    if let Some(debt) = debts.records.iter().find(|debt| debt.pod_uid == member.pod_uid) {
        let record =
            records(context)?.iter().find(|record| debt.is_about(record, context.index.cluster()));
        if !record.is_some_and(|record| record.complete) {
            return refuse(Code::Preparing, prepares(record));
        }
    }
    let is_held = |uid| debts.allocation.as_ref().is_some_and(|debt| debt.holders.contains(uid));
    if is_held(&member.pod_uid) {
        let allocation = context.index.allocation()?;
        if allocation.marker.is_none() || !is_tight(allocation) {
            return refuse(Code::Preparing, "allocation is not limited to primaries");
        }
    }
    if is_to_be_flushed(context, &member.node) {
        return refuse(Code::Preparing, "it is being flushed");
    }
    may_stop_alone(context, ledger, restart, pod)
}
