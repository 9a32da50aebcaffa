//! Aborts a member's restart: writes to the ledger that its engine is started again.

use super::compensation::{compensation_for, outcome_of};
use super::update::rollback;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::RestartChange;
use crate::{Compensation, Ending, Member, MemberStep, Reason};

/// Aborts the restart of a member. The entry is written before anything is sent.
pub(super) fn abort(context: &Context<'_>, index: usize, member: &Member, reason: &str) -> Changes {
    let manager = context.index.manager(&member.pod_uid).ok();
    let pod = context.index.pod(&member.pod_uid);
    let needs_a_stop = rollback::needs_a_stop_of(member, pod);
    let compensation = compensation_for(member, manager, context.policy.rollback, needs_a_stop);
    let outcome = outcome_of(context, member, compensation.config);
    let mut changes = Changes::default();
    let how = if rollback::is_due_of(member, pod) { ", with its pod rolled back" } else { "" };
    let message = format!("{} is started again{how}: {reason}", member.node);
    changes.event(Some(&member.pod_uid), Reason::NodeRestartAborted, message);
    changes.end_with(outcome, format!("{}: {reason}", member.node));
    changes.change(set_back(context, index, member, compensation, reason));
    changes
}

/// Writes to the ledger that a member is being brought back.
pub(crate) fn set_back(
    context: &Context<'_>,
    index: usize,
    member: &Member,
    compensation: Compensation,
    reason: &str,
) -> RestartChange {
    let outcome = outcome_of(context, member, compensation.config);
    let mut back = member.clone();
    back.step = MemberStep::Aborting;
    back.since = context.snapshot.now;
    back.compensation = Some(compensation);
    back.ending = Some(Ending { outcome, reason: reason.to_owned() });
    RestartChange::SetMember { index, member: Box::new(back) }
}
