//! Gives slots to the members whose turn it is, in their order, and says why the others wait. What blocks
//! all nodes of a restart is asked first. A restart that the reconciler requested itself ends if none of
//! its nodes can be restarted for a long time: nobody waits for it, and the requests of people wait behind
//! it.

pub(crate) mod operator_hold;
pub(crate) mod slot;

use std::time::Duration;

use crate::changes::{Changes, Check, Wait, Waits, refuse};
use crate::flow::begin::operator_hold::OperatorHold;
use crate::flow::begin::slot::{begin, begin_zone};
use crate::flow::debts::starts::is_waited_for;
use crate::flow::engine::voting::is_exclusion_due;
use crate::flow::labels::until_operator_has_seen;
use crate::flow::member::give_back::not_just_given_back;
use crate::flow::member::replaced::{may_be_deleted, until_started};
use crate::flow::observed::not_held;
use crate::flow::requests::configs::may_change_alone;
use crate::flow::requests::is_own;
use crate::flow::turn::TurnView;
use crate::index::{Lookup, lookup};
use crate::ledger::RestartChange;
use crate::rules::{FailedSets, StopImpact, list_names, order, select, set_of};
use crate::{
    Action, Blocker, Code, Context, Ledger, Member, MemberStep, Outcome, Pod, Reason, Restart,
    Share, Strategy, Time,
};

/// Gives a slot to the members whose turn it is, and the others their reason to wait. A restart that the
/// reconciler requested itself ends if it is stuck for too long.
pub(crate) fn choose_next(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let waiting = ledger.restart.as_ref().filter(|restart| restart.ending.is_none());
    let Some(restart) = waiting else { return Changes::default() };
    let mut changes = give_slots(context, ledger, restart);
    changes.merge(end_if_stuck(context, restart, &changes));
    changes
}

/// The nodes of a restart that wait for their turn, with what it is decided from.
pub(crate) struct Candidates<'t, 'a> {
    pub(crate) context: &'t Context<'a>,
    pub(crate) ledger: &'t Ledger,
    pub(crate) restart: &'t Restart,
    /// Places of these members in the restart, by uid of the pod.
    places: Lookup<'t, usize>,
    /// Pods of these members that are listed, in the order of the pods.
    pub(crate) pods: Vec<&'a Pod>,
}

impl<'t, 'a> Candidates<'t, 'a> {
    fn of(context: &'t Context<'a>, ledger: &'t Ledger, restart: &'t Restart) -> Self {
        let members = restart.members.iter().enumerate();
        // A node that is to be kept stopped leaves the restart with its stop, or waits for that.
        let index = &context.index;
        let is_kept =
            |uid| index.place(uid).is_some_and(|pod| index.marks_at(pod).is_to_be_stopped);
        let scheduled = members
            .filter(|(_, member)| member.step == MemberStep::Scheduled && !is_kept(&member.pod_uid))
            .map(|(index, member)| (member.pod_uid.as_str(), index));
        let places = lookup(restart.members.len(), scheduled);
        let pods = index.pods().filter(|pod| places.contains_key(pod.uid.as_str()));
        let pods = if places.is_empty() { Vec::new() } else { order(pods, index.engine().ok()) };
        Self { context, ledger, restart, places, pods }
    }

    /// Takes out the pods that wait for an operator, and returns their reasons.
    fn leave_to_operators(&mut self) -> Waits {
        let hold = OperatorHold::of(self.context, &self.restart.request);
        let mut waits = Waits::new();
        self.pods.retain(|pod| match hold.check(pod) {
            Ok(()) => true,
            Err(blocker) => {
                waits.push(Wait::pod(&pod.uid, blocker));
                false
            }
        });
        waits
    }

    /// True if the pod of every one of these members is listed.
    pub(crate) fn are_listed(&self) -> bool {
        self.pods.len() == self.places.len()
    }

    pub(crate) fn view(&self, pod: &Pod) -> TurnView<'t, 'a> {
        TurnView::of(self.context, self.ledger, self.restart, self.places[&*pod.uid])
    }

    /// One reason to wait, for each of the pods.
    pub(crate) fn wait(&self, blocker: &Blocker) -> Waits {
        self.pods.iter().map(|pod| Wait::pod(&pod.uid, blocker.clone())).collect()
    }
}

fn give_slots(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Changes {
    let mut changes = Changes::default();
    let mut candidates = Candidates::of(context, ledger, restart);
    if candidates.places.is_empty() {
        return changes;
    }
    let failed = failed_as_a_set(&candidates);
    if !failed.is_empty() && missing_finalizer(context).is_none() {
        if let Some(begun) = begin_failed(&candidates, &failed) {
            return begun;
        }
    } else if !failed.is_empty() {
        changes.actions.extend(missing_finalizer(context));
    }
    if let Err(blocker) = may_begin(context, ledger, restart) {
        changes.wait_all(blocker.code, blocker.message.clone());
        changes.waits.extend(candidates.wait(&blocker));
        return changes;
    }
    if let Some(action) = missing_finalizer(context) {
        return Changes::action(action);
    }
    let held = candidates.leave_to_operators();
    let goes_as_a_whole = restart.request.goes_as_a_whole();
    if let Some(first) = held.first()
        && (goes_as_a_whole || candidates.pods.is_empty())
    {
        changes.wait_all(first.code, first.message.clone());
        changes.waits.extend(held);
        return changes;
    }
    let mut changes = if goes_as_a_whole {
        begin_zone(&candidates).unwrap_or_else(Changes::from)
    } else {
        begin_in_order(&candidates)
    };
    changes.waits.extend(held);
    report_quorum(context, &mut changes);
    changes
}

/// Gives a slot to every candidate that passes the rules, in the order of the candidates.
fn begin_in_order(candidates: &Candidates<'_, '_>) -> Changes {
    let Candidates { context, ledger, restart, pods, .. } = candidates;
    let mut changes = Changes::default();
    let mut evaluation = match context.evaluate(ledger) {
        Ok(evaluation) => evaluation,
        Err(blocker) => {
            let sets = FailedSets::of(&context.index, ledger);
            for pod in pods {
                if let Err(blocker) = may_be_deleted(&candidates.view(pod), pod) {
                    changes.block(&pod.uid, blocker);
                    continue;
                }
                let blocker = context.preflight(pod).err().unwrap_or_else(|| blocker.clone());
                changes.block(&pod.uid, failed_in_part(&sets, pod, blocker));
            }
            return changes;
        }
    };
    let strategy = restart.request.strategy;
    let pause =
        not_just_given_back(context, restart).and_then(|()| until_operator_has_seen(context));
    let turns = select(&mut evaluation, pods, strategy, |pod, manager, terms| {
        pause.clone()?;
        until_started(context, restart, pod, manager)?;
        let view = &candidates.view(pod);
        may_change_alone(view, pod, manager)?;
        changes.merge(begin(view, pod, manager, terms)?);
        Ok(())
    });
    for (pod, turn) in turns {
        if let Err(blocker) = turn {
            changes.block(&pod.uid, blocker);
        }
    }
    changes
}

/// Reports the first node that is skipped because too few nodes would be left to elect a master. Every plan
/// has the event while this lasts; the caller that executes plans must record it only once.
fn report_quorum(context: &Context<'_>, changes: &mut Changes) {
    let is_quorum = |wait: &&Wait| wait.code == Code::Quorum;
    let skipped = changes.waits.iter().filter(is_quorum).find_map(|wait| wait.pod.as_deref());
    if let Some(pod) = skipped.and_then(|uid| context.index.pod(uid)) {
        let message = format!("Skipping restart of {}: insufficient quorum", pod.node);
        changes.event(Some(&pod.uid), Reason::RestartSkipped, message);
    }
}

/// The members whose whole set has failed, if they may be restarted at once. They are down already, so the
/// rules have nothing to protect; and failed masters that are restarted one by one cannot elect a master.
/// They do not wait for other nodes under way, nor for debts to an unreachable engine.
fn failed_as_a_set<'a>(candidates: &Candidates<'_, 'a>) -> Vec<&'a Pod> {
    let Candidates { context, ledger, restart, pods, .. } = candidates;
    if pods.iter().all(|pod| pod.ready) {
        return Vec::new();
    }
    let answers = match context.index.engine() {
        Ok(_) => true,
        Err(blocker) if blocker.code == Code::WrongCluster => return Vec::new(),
        Err(_) => false,
    };
    if (answers && owes_the_engine(context, ledger))
        || restart.request.goes_as_a_whole()
        || may_begin_at_all(context, ledger, restart).is_err()
    {
        return Vec::new();
    }
    let sets = FailedSets::of(&context.index, ledger);
    pods.iter().copied().filter(|pod| sets.whole_set_failed(pod)).collect()
}

/// Gives a slot to all members whose set has failed; the others wait for them. `None`: no member can get one.
fn begin_failed(candidates: &Candidates<'_, '_>, failed: &[&Pod]) -> Option<Changes> {
    let mut changes = Changes::default();
    let mut gone: Vec<&str> = Vec::new();
    let terms = StopImpact { without_engine: true, ..StopImpact::default() };
    for pod in failed {
        let view = &candidates.view(pod);
        let begun = view.context.preflight(pod).and_then(|manager| {
            may_change_alone(view, pod, manager)?;
            may_be_deleted(view, pod)?;
            begin(view, pod, manager, &terms)
        });
        match begun {
            Ok(begun) => {
                changes.merge(begun);
                gone.push(pod.node.as_str());
            }
            Err(blocker) => changes.block(&pod.uid, blocker),
        }
    }
    if gone.is_empty() {
        return None;
    }
    let all = list_names(&gone);
    let go = if gone.len() == 1 { "goes" } else { "go" };
    let message = format!("{all} {go} first: no node of their set serves any more");
    for pod in candidates.pods.iter().filter(|pod| !gone.contains(&pod.node.as_str())) {
        changes.wait(&pod.uid, Code::NotItsTurn, message.clone());
    }
    Some(changes)
}

/// Adds to a blocker why a set that has failed only in part waits for an unreachable engine.
fn failed_in_part(sets: &FailedSets<'_>, pod: &Pod, blocker: Blocker) -> Blocker {
    let set = sets.set(pod);
    let unreachable = matches!(blocker.code, Code::EngineUnreachable | Code::WrongCluster);
    if !unreachable || set.failed == 0 {
        return blocker;
    }
    let name = set_of(pod);
    let message = if blocker.code == Code::WrongCluster {
        format!(
            "{}; {} of the {} nodes of {name} have failed, and none is restarted while it is not \
             certain whose engine answers",
            blocker.message, set.failed, set.pods
        )
    } else {
        format!(
            "{}; {} of the {} nodes of {name} have failed: if all had, they would be restarted \
             without asking it",
            blocker.message, set.failed, set.pods
        )
    };
    Blocker { message, ..blocker }
}

/// Passes if the next nodes of this restart may get a slot.
pub(crate) fn may_begin(context: &Context<'_>, ledger: &Ledger, restart: &Restart) -> Check {
    may_begin_at_all(context, ledger, restart)?;
    if owes_the_engine(context, ledger) {
        return refuse(
            Code::Debts,
            "an earlier change must be undone first (Degraded in status.conditions)",
        );
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
        return refuse(
            Code::Debts,
            "an earlier change must be undone first (Degraded in status.conditions)",
        );
    }
    Ok(())
}

/// Passes unless there is a start debt for this very pod.
pub(crate) fn is_owed_no_start(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> Check {
    if ledger.owes_start(&pod.uid) || context.snapshot.ledger.owes_start(&pod.uid) {
        return refuse(
            Code::Debts,
            format!("{} is started first (Degraded in status.conditions)", pod.node),
        );
    }
    Ok(())
}

/// True if a change on the engine must be undone because no member under way needs it any more.
fn owes_the_engine(context: &Context<'_>, ledger: &Ledger) -> bool {
    let allocation = ledger.debts.allocation.as_ref();
    allocation.is_some_and(|debt| debt.holders.is_empty()) || is_exclusion_due(context, ledger)
}

/// The action that adds our finalizer to the SearchCluster, unless it has it. This action comes before any
/// action that would have to be undone.
pub(crate) fn missing_finalizer(context: &Context<'_>) -> Option<Action> {
    (!context.snapshot.cluster.finalizer).then_some(Action::AddFinalizer)
}

/// Time after which a stuck restart ends, in phase timeouts: four hours by default, so that the shards of a
/// large node can be copied meanwhile.
const PHASES: u64 = 16;

/// Ends the restart once it has been stuck for too long; `chosen`: the changes of this plan for the nodes
/// that wait. The time counts from the plan that first found it stuck, not from its last node: in between the
/// reconciler may have been down, a person may have paused the restart, or no maintenance window was open.
pub(crate) fn end_if_stuck(context: &Context<'_>, restart: &Restart, chosen: &Changes) -> Changes {
    let mut changes = Changes::default();
    let has_turns = restart.members.iter().any(Member::is_under_way) || !chosen.ledger.is_empty();
    if !is_own(restart) || has_turns || !restart.has_scheduled() {
        return changes;
    }
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    let is_held = not_held(context, &restart.request).is_err();
    let last_turn = last_turn(restart);
    let known = restart.stuck_since.filter(|at| *at >= last_turn);
    let longest = phase.saturating_mul(PHASES);
    match known {
        Some(_) if is_held => changes.change(RestartChange::SetStuck(None)),
        Some(since) if now.since(since) >= longest => {
            let longest = humantime::format_duration(Duration::from_millis(longest));
            let reason = format!("no node could be restarted for {longest}{}", why(chosen));
            changes.end_with(Outcome::Aborted, reason);
        }
        None if now.since(last_turn) >= phase && !is_held => {
            changes.change(RestartChange::SetStuck(Some(now)));
        }
        Some(_) | None => {}
    }
    changes
}

/// Time when the last finished member took its slot, or when the restart started if none is finished.
pub(crate) fn last_turn(restart: &Restart) -> Time {
    let finished = restart.members.iter().filter(|member| member.step == MemberStep::Finished);
    finished.map(|member| member.since).fold(restart.started, Time::max)
}

/// The reason of the first node that waits, as the end of a message; a blocker comes before other reasons.
fn why(chosen: &Changes) -> String {
    let blocked = chosen.waits.iter().filter(|wait| wait.pod.is_some());
    let first = blocked.clone().find(|wait| wait.code.blocks()).or_else(|| blocked.clone().next());
    first.map_or(String::new(), |wait| format!(": {}", wait.message))
}
