//! A person replaces the frozen configs of a restart that only goes forward and cannot end, because nodes
//! of it cannot be started on their frozen config (stranded nodes): its nodes, running or stopped, become
//! members of a new restart.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::flow::answers::{is_overtaken, take_sequences_above};
use crate::flow::begin::slot::begun_event;
use crate::flow::begin::{may_begin, missing_finalizer};
use crate::flow::coordinated::active;
use crate::flow::engine::allocation_debt;
use crate::flow::finish::record_end;
use crate::flow::observed::{expected_now, has_joined, is_over_time, is_to_be_stopped};
use crate::flow::target::{members_of, scheduled};
use crate::index::{Lookup, NameSet};
use crate::ledger::LedgerChange;
use crate::snapshot::namespace_and_name;
use crate::{
    AllocationDebt, Blocker, Code, Context, Direction, Ending, Ledger, Manager, Member, MemberStep,
    Once, Outcome, Pod, Reason, Request, Restart, Strategy,
};
use stayput_api::State;
use stayput_api::checksum::short;

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
    let now = context.snapshot.now;
    changes.change(LedgerChange::OpenRestart(Box::new(Restart {
        began: Some(now),
        direction: Direction::Forward,
        once: Once { allocation: tightened, flush: false },
        ..Restart::new(request.clone(), now, taken.members)
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
    let next = Restart::new(request.clone(), context.snapshot.now, Vec::new());
    may_begin(context, ledger, &next).map_err(|refusal| refusal.message)?;
    let active = active(restart).map(|(_, one)| (one.pod_uid.as_str(), one));
    let active: Lookup<'_, &Member> = active.collect();
    // This leaves out a node that a person has stopped since then, and one that is owed a start: it is down,
    // so it runs on no other config.
    members.retain(|member| {
        let uid = member.pod_uid.as_str();
        active.contains_key(uid) || !(is_kept_down(context, uid) || ledger.owes_start(uid))
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
pub(crate) fn may_be_stopped_again(
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

/// A queued request that cannot supersede a restart, and the reason.
pub(crate) struct Obstacle {
    /// Id of the queued request.
    pub(crate) asked: String,
    pub(crate) message: String,
}

/// True if a coordinated restart has a stranded member, so that a person may request another restart that
/// supersedes it.
fn has_stranded(context: &Context<'_>, restart: &Restart) -> bool {
    restart.is_coordinated()
        && active(restart).any(|(_, member)| is_stranded(context, restart, member))
}

/// True if a member can no longer be started on the config that was frozen for it: the mounted config and the
/// sources have changed, or its engine was already stopped once and runs on another config.
pub(crate) fn is_stranded(context: &Context<'_>, restart: &Restart, member: &Member) -> bool {
    if restart.direction != Direction::Forward || restart.frozen.is_none() {
        return false;
    }
    let pod = context.index.pod(&member.pod_uid);
    let (Some(pod), Ok(manager)) = (pod, context.index.manager(&member.pod_uid)) else {
        return false;
    };
    if is_on_another(manager, member) {
        return true;
    }
    let moved = manager.mounted != member.expected
        && expected_now(pod, manager).is_ok_and(|now| now != member.expected);
    let late = || is_over_time(context, member, 1) && has_joined(context, member) == Ok(false);
    moved && (!runs_as_asked(manager, member) || late())
}

/// The blocker of a stranded member: why it waits, and what a person can do about it.
pub(crate) fn stranded_blocker(
    context: &Context<'_>,
    restart: &Restart,
    member: &Member,
    obstacle: Option<&Obstacle>,
) -> Blocker {
    let cluster = &context.snapshot.cluster;
    let (node, id) = (&member.node, &restart.request.id);
    let wanted = short(member.expected.as_deref().unwrap_or("that was mounted"));
    let manager = context.index.manager(&member.pod_uid).ok();
    let runs = manager.is_some_and(|manager| is_on_another(manager, member));
    let what = if runs {
        format!("{node} runs on another config than {wanted}")
    } else {
        format!("{node} is not back, and its sources no longer have the config {wanted}")
    };
    let mut ways = Vec::new();
    if !runs {
        ways.push("put that config back".to_owned());
    }
    let (namespace, name) = namespace_and_name(&cluster.name);
    match obstacle {
        // A deleted SearchCluster accepts no requests; a stop or start by a person ends the node's
        // part.
        _ if cluster.deleting => {
            ways.push(format!("stop and start the engine of {node} yourself"));
        }
        Some(Obstacle { asked, message }) => ways.push(format!(
            "wait until restart {asked} can take the place of {id}, which it cannot yet: \
             {message}"
        )),
        None => ways.push(format!(
            "ask with `kubectl stayput -n {namespace} restart {name} --coordinated` for a restart of all \
             nodes on the config in their sources, which replaces {id}"
        )),
    }
    Blocker {
        code: Code::Stranded,
        message: format!(
            "{what} that {id} starts every node with; others run on it, so no node is reverted: {}",
            ways.join(", or ")
        ),
    }
}

/// True if a member is back in the cluster, on the config that was frozen for it.
pub(crate) fn is_back(context: &Context<'_>, member: &Member) -> bool {
    let manager = context.index.manager(&member.pod_uid);
    manager.is_ok_and(|manager| runs_as_asked(manager, member))
        && has_joined(context, member) == Ok(true)
}

/// True if the member's engine runs, or is starting, because of our start and on the requested config.
fn runs_as_asked(manager: &Manager, member: &Member) -> bool {
    manager.sequence >= member.start_sequence && is_up(manager) && !is_on_another(manager, member)
}

/// True if the member's engine runs after our stop on another config than requested: another client started
/// it on the config that was mounted then.
fn is_on_another(manager: &Manager, member: &Member) -> bool {
    let run =
        manager.run.as_ref().filter(|_| is_up(manager) && manager.sequence >= member.stop_sequence);
    member.expected.is_some() && run.is_some_and(|run| run.checksum != member.expected)
}

const fn is_up(manager: &Manager) -> bool {
    matches!(manager.state, State::Starting | State::Running)
}
