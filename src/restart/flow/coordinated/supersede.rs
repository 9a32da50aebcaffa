//! A person replaces the frozen configs of a restart that only goes forward and cannot end: its
//! nodes, running or stopped, become members of a new restart.

use std::collections::BTreeSet;

use super::active;
use super::stranded_nodes::{Obstacle, has_stranded, is_back};
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::answers::{is_overtaken, take_sequences_above};
use crate::flow::begin::may_begin::{may_begin, missing_finalizer};
use crate::flow::begin::slot::begun_event;
use crate::flow::engine::allocation::allocation_debt;
use crate::flow::history::record_end;
use crate::flow::observed::{expected_now, is_to_be_stopped};
use crate::flow::target::{members_of, scheduled};
use crate::ledger::LedgerChange;
use crate::lookup::{Lookup, NameSet};
use crate::{
    AllocationDebt, Blocker, Code, Direction, Ending, Ledger, Manager, Member, MemberStep, Once,
    Outcome, Pod, Reason, Request, Restart, Strategy,
};
use stayput_api::State;

/// Members and allocation debt that a new restart takes over, in one write.
struct TakenOver {
    members: Vec<Member>,
    allocation: Option<AllocationDebt>,
}

/// Lets the queued coordinated request supersede a restart that only goes forward and cannot end. This is one
/// write, so that every node always belongs to a restart.
pub(crate) fn supersede(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let (Some(restart), Some(request)) = (&ledger.restart, &ledger.queued) else { return changes };
    if !is_coordinated(request) || !has_stranded(context, restart) {
        return changes;
    }
    // The reason is reported for the node that waits.
    let Ok(taken) = take_over(context, ledger, restart, request) else { return changes };
    if let Some(action) = missing_finalizer(context) {
        return Changes::action(action);
    }
    let back = active(restart).filter(|(_, member)| is_back(context, member)).count();
    let reason =
        format!("restart {} took its place: not every node could get its config", request.id);
    let ending = Ending { outcome: Outcome::Superseded, reason };
    changes.merge(record_end(context, restart, ending, back, None));
    let message = format!(
        "Starting coordinated restart {} of {} nodes in the place of {}: all nodes are stopped, then \
         started on the config in their sources",
        request.id,
        taken.members.len(),
        restart.request.id
    );
    changes.event(None, Reason::RestartStarted, message);
    changes.events.extend(taken.members.iter().map(|member| begun_event(member, "")));
    changes.change(LedgerChange::SetQueued(None));
    // The marker beside the setting has the id of the restart that set it; so has the debt.
    let tightened = restart.once.allocation && ledger.debts.allocation.is_some();
    changes.change(LedgerChange::SetAllocationDebt(taken.allocation));
    changes.change(LedgerChange::OpenRestart(Box::new(Restart {
        request: request.clone(),
        started: context.snapshot.now,
        began: Some(context.snapshot.now),
        stuck_since: None,
        direction: Direction::Forward,
        ending: None,
        once: Once { allocation: tightened, flush: false },
        frozen: None,
        members: taken.members,
    })));
    changes
}

/// The queued coordinated request, and why it cannot supersede a restart with a stranded member.
pub(crate) fn why_not_superseded(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Option<Obstacle> {
    let queued = ledger.queued.as_ref().filter(|queued| is_coordinated(queued))?;
    if !has_stranded(context, restart) {
        return None;
    }
    let message = take_over(context, ledger, restart, queued).err()?;
    Some(Obstacle { asked: queued.id.clone(), message })
}

/// Members and allocation debt of the new restart, or why it cannot begin.
fn take_over(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    request: &Request,
) -> Result<TakenOver, String> {
    // The engine may have lost its majority because of this restart. The new restart needs only its roles and
    // zones.
    if let Err(refusal) = context.index.engine()
        && (request.target.is_by_engine() || refusal.code != Code::EngineUnreachable)
    {
        return Err(refusal.message);
    }
    let mut members = members_of(context, &request.target)?;
    let uids: Vec<String> = members.iter().map(|member| member.pod_uid.clone()).collect();
    let meant: NameSet<'_> = uids.iter().map(String::as_str).collect();
    for (_, member) in active(restart) {
        let Some(pod) = context.index.pod(&member.pod_uid).filter(|pod| !pod.terminating) else {
            return Err(format!("the pod {} is gone or being deleted", member.pod));
        };
        let is_meant = meant.contains(&*member.pod_uid);
        if !is_meant && !is_to_be_stopped(context, pod) {
            return Err(format!(
                "it does not select {}, which is part of {} and would keep another config than the \
                 others",
                member.node, restart.request.id
            ));
        }
        if !is_meant {
            // We stopped it. It counts as kept stopped only once that is in the ledger.
            members.push(scheduled(pod, context.snapshot.now));
        }
    }
    members.sort_by(|one, other| one.node.cmp(&other.node));
    let next = Restart {
        request: request.clone(),
        started: context.snapshot.now,
        began: None,
        stuck_since: None,
        direction: Direction::Forward,
        ending: None,
        once: Once::default(),
        frozen: None,
        members: Vec::new(),
    };
    may_begin(context, ledger, &next).map_err(|refusal| refusal.message)?;
    let active = active(restart).map(|(_, one)| (one.pod_uid.as_str(), one));
    let active: Lookup<'_, &Member> = active.collect();
    // This leaves out a node that a person has stopped since then, and one that is owed a start: it is down,
    // so it runs on no other config.
    let is_owed = |uid: &str| ledger.debts.start.iter().any(|debt| debt.pod_uid == uid);
    members.retain(|member| {
        let uid = member.pod_uid.as_str();
        active.contains_key(uid) || !(is_kept_down(context, uid) || is_owed(uid))
    });
    for member in &mut members {
        let begun = begun_again(context, member, active.get(&*member.pod_uid).copied());
        *member = begun.map_err(|refusal| format!("{}: {}", member.node, refusal.message))?;
    }
    let allocation = allocation_taken_over(context, ledger, request, &members)
        .map_err(|refusal| refusal.message)?;
    Ok(TakenOver { members, allocation })
}

/// A member of the new restart, with sequences above those of all requests that may still reach its manager.
fn begun_again(
    context: &Context<'_>,
    member: &Member,
    before: Option<&Member>,
) -> Result<Member, Blocker> {
    let manager = context.index.manager(&member.pod_uid)?;
    let pod = context.index.pod(&member.pod_uid);
    let pod = pod.filter(|_| before.is_none_or(|before| !is_overtaken(manager, before)));
    let Some(pod) = pod else {
        let message = "another client sent its manager a request, which is handled first";
        return Err(Blocker { code: Code::Interfered, message: message.into() });
    };
    match before {
        Some(_) => may_be_stopped_again(context, pod, manager)?,
        None => context.preflight(pod).map(|_| ())?,
    }
    let node = context.index.node(&member.node);
    let above = before.map_or(0, |before| before.start_sequence).max(manager.sequence);
    let mut begun = member.clone();
    begun.step = MemberStep::Restarting;
    take_sequences_above(&mut begun, above);
    begun.expected = expected_now(pod, manager)?;
    begun.ephemeral_id = node.map(|node| node.ephemeral_id.clone());
    let known = before.and_then(|before| before.node_id.clone());
    begun.node_id = node.map(|node| node.id.clone()).or(known);
    (begun.roles, begun.zone) = match (node, before) {
        (Some(node), _) => (node.roles.clone(), node.zone.clone()),
        (None, Some(before)) => (before.roles.clone(), before.zone.clone()),
        (None, None) => Default::default(),
    };
    begun.master_eligible = node.map_or_else(
        || before.is_some_and(|before| before.master_eligible),
        crate::Node::is_master_eligible,
    );
    Ok(begun)
}

/// True if another client keeps the engine of this pod stopped.
fn is_kept_down(context: &Context<'_>, uid: &str) -> bool {
    let refusal = context.index.pod(uid).and_then(|pod| context.preflight(pod).err());
    refusal.is_some_and(|refusal| refusal.code == Code::KeptStopped)
}

/// Allocation stays limited: the debt is held for the members of the new restart.
fn allocation_taken_over(
    context: &Context<'_>,
    ledger: &Ledger,
    request: &Request,
    members: &[Member],
) -> Result<Option<AllocationDebt>, Blocker> {
    let holders = members.iter().map(|member| member.pod_uid.clone());
    match &ledger.debts.allocation {
        Some(debt) => {
            let holders: BTreeSet<String> = debt.holders.iter().cloned().chain(holders).collect();
            let mut debt = debt.clone();
            debt.holders = holders.into_iter().collect();
            Ok(Some(debt))
        }
        None => {
            allocation_debt(context, &request.id, context.index.allocation()?, holders.collect())
        }
    }
}

/// Like [`Context::preflight`], for a node that we may have stopped ourselves. Such a node gets one more stop
/// request only for its higher sequence: the manager then refuses any earlier start.
pub(super) fn may_be_stopped_again(
    context: &Context<'_>,
    pod: &Pod,
    manager: &Manager,
) -> Result<(), Blocker> {
    let is_down =
        |refusal: &Blocker| refusal.code == Code::KeptStopped && manager.state == State::Stopped;
    context
        .preflight(pod)
        .map(|_| ())
        .or_else(|refusal| if is_down(&refusal) { Ok(()) } else { Err(refusal) })
}

fn is_coordinated(request: &Request) -> bool {
    request.strategy == Strategy::Coordinated
}
