//! Nodes that are kept stopped on request of a person; their pods stay.

use crate::changes::{Changes, Check, refuse};
use crate::flow::answers::{is_ending, was_refused};
use crate::flow::begin::missing_finalizer;
use crate::flow::begin::operator_hold::OperatorHold;
use crate::flow::debts::starts::is_waited_for;
use crate::flow::engine::voting::is_exclusion_due;
use crate::flow::labels::{until_ahead, until_operator_has_seen};
use crate::flow::member::stop::end_drain;
use crate::flow::member::update::frozen_update::planned_update;
use crate::flow::member::update::rollback::is_due_of;
use crate::flow::observed::not_paused;
use crate::index::{Lookup, Marks};
use crate::ledger::LedgerChange;
use crate::needs_coordinated::needs_coordinated_between;
use crate::{
    Action, Blocker, Code, Context, Ending, KeptStopped, Ledger, Manager, MemberStep, Outcome, Pod,
    Reason, Request, StartDebt, Strategy,
};
use stayput_api::{ConfigChoice, Desired, State};

/// Removes entries whose pod was replaced. A list without the pod is no proof: it may be
/// incomplete.
pub(crate) fn forget_replaced(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if ledger.kept_stopped.is_empty() {
        return changes;
    }
    // By name of the node: uid of a pod, and true if there are several.
    let mut by_node: Lookup<'_, (&str, bool)> = Lookup::default();
    for pod in context.index.pods() {
        let found = by_node.entry(&pod.node);
        found.and_modify(|(_, several)| *several = true).or_insert((&pod.uid, false));
    }
    let is_over = |kept: &&KeptStopped| {
        let found = by_node.get(kept.node.as_str());
        found.is_some_and(|(uid, several)| *several || *uid != kept.pod_uid)
    };
    let over = ledger.kept_stopped.iter().filter(is_over);
    changes.ledger.extend(over.cloned().map(LedgerChange::RemoveKeptStopped));
    changes
}

/// Stops a node that is to be kept stopped, and starts a node that no longer is: one node at a time, by the
/// rules.
pub(crate) fn keep_stopped(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
    marks: &Marks<'_>,
) -> Changes {
    let kept = entry_of(context, ledger, pod);
    let wanted = marks.is_to_be_stopped;
    if kept.is_none() && !wanted {
        return Changes::default();
    }
    let done = match (kept, wanted) {
        (None, _) => begin(context, ledger, pod),
        (Some(kept), true) if kept.releasing => stop_after_all(context, kept, pod),
        (Some(kept), true) => stop(context, ledger, kept, pod),
        (Some(kept), false) => release(context, ledger, kept, pod),
    };
    done.unwrap_or_else(|blocker| {
        let mut changes = Changes::default();
        changes.block(&pod.uid, blocker);
        changes
    })
}

/// A pod's entry among the nodes kept stopped.
fn entry_of<'l>(context: &Context<'_>, ledger: &'l Ledger, pod: &Pod) -> Option<&'l KeptStopped> {
    let place = context.place_of_kept_stopped(&pod.uid)?;
    // Entries removed in this plan have changed the positions of the others.
    let kept = &ledger.kept_stopped[..ledger.kept_stopped.len().min(place + 1)];
    kept.iter().rfind(|kept| kept.pod_uid == pod.uid)
}

/// Writes to the ledger that a node will be stopped, if the rules allow it.
fn begin(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> Result<Changes, Blocker> {
    if let Some(action) = missing_finalizer(context) {
        return Ok(Changes::action(action));
    }
    let manager = may_be_stopped(context, ledger, pod)?;
    let member = ledger.under_way().find(|member| member.pod_uid == pod.uid);
    let taken = member.map_or(0, |member| {
        let back = member.compensation.as_ref();
        back.map_or(member.start_sequence, |back| back.start_sequence)
    });
    // A start that is owed may have been sent, and arrive later than the stop.
    let owed = ledger.debts.start.iter().filter(|debt| debt.pod_uid == pod.uid);
    let owed = owed.map(|debt| debt.sequence).max().unwrap_or_default();
    let sequence = manager.sequence.max(taken).max(owed) + 1;
    let mut changes = leave_restart(ledger, pod);
    // The pod is rolled back by a debt: its label names the template that it had.
    if let Some(member) = member.filter(|member| is_due_of(member, Some(pod))) {
        let (config, now) = (ConfigChoice::Mounted, context.snapshot.now);
        changes.change(LedgerChange::AddStartDebt(StartDebt::of(member, sequence, config, now)));
    }
    changes.change(LedgerChange::AddKeptStopped(KeptStopped {
        pod_uid: pod.uid.clone(),
        node: pod.node.clone(),
        sequence,
        releasing: false,
        config: ConfigChoice::Mounted,
        checksum: None,
    }));
    let message = format!("{} is being stopped and stays stopped; its pod is kept", pod.node);
    changes.event(Some(&pod.uid), Reason::NodeStopped, message);
    Ok(changes)
}

/// The pod's manager, if the rules let its node be stopped.
fn may_be_stopped<'a>(
    context: &Context<'a>,
    ledger: &Ledger,
    pod: &Pod,
) -> Result<&'a Manager, Blocker> {
    let manager = context.index.manager(&pod.uid)?;
    not_paused(context)?;
    if context.snapshot.cluster.deleting {
        refuse(Code::Idle, "the SearchCluster is being deleted: nothing is stopped")?;
    }
    if !context.snapshot.cluster.overlaps.is_empty() {
        refuse(Code::OverlappingSelectors, "another SearchCluster selects it as well")?;
    }
    let debts = &ledger.debts;
    // The node's vote comes back once its pod is rolled back, and that happens after the stop.
    let waits_for_the_stop = ledger.owes_start(&pod.uid)
        && debts.exclusion.as_ref().is_some_and(|debt| debt.pod_uid == pod.uid);
    let is_exclusion_due = !waits_for_the_stop && is_exclusion_due(context, ledger);
    let holds_up = |debt: &StartDebt| debt.pod_uid != pod.uid && is_waited_for(context, debt);
    if is_exclusion_due || debts.start.iter().any(holds_up) {
        refuse(
            Code::Debts,
            "an earlier change must be undone first (Degraded in status.conditions)",
        )?;
    }
    if manager.state == State::Stopped {
        // The engine is stopped already; the entry only keeps it stopped.
        return Ok(manager);
    }
    let mut others = ledger.under_way();
    if let Some(other) = others.find(|member| member.pod_uid != pod.uid) {
        let message = format!("{} is under way; one node at a time", other.node);
        refuse(Code::AnotherInProgress, message)?;
    }
    context.preflight(pod)?;
    operator_leaves(context, pod)?;
    rules_allow(context, ledger, pod).map(|()| manager)
}

/// Passes unless the pod's operator would delete it once its engine is stopped, or take it for the second node that
/// fails.
fn operator_leaves(context: &Context<'_>, pod: &Pod) -> Check {
    let request = Request::default();
    OperatorHold::of(context, &request).check(pod)?;
    until_operator_has_seen(context)?;
    match (planned_update(context.policy, request.strategy, pod), &pod.live) {
        (Some(update), Some(live)) => until_ahead(pod, live, update),
        (Some(_), None) | (None, _) => Ok(()),
    }
}

/// Checks the rules for a stop that belongs to no restart.
fn rules_allow(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> Check {
    let evaluation = context.evaluate(ledger)?.without_request();
    let request = Request { strategy: Strategy::Immediate, ..Request::default() };
    evaluation.check_rules(pod, request.strategy)?;
    evaluation.check_before_stop(pod, &request)
}

/// Takes a member that is to be kept stopped out of the restart, so that no step waits for it.
fn leave_restart(ledger: &Ledger, pod: &Pod) -> Changes {
    let mut changes = Changes::default();
    let found = ledger.members().enumerate().filter(|(_, one)| one.step != MemberStep::Finished);
    let Some((index, member)) = found.into_iter().find(|(_, member)| member.pod_uid == pod.uid)
    else {
        return changes;
    };
    let mut left = member.clone();
    left.step = MemberStep::Finished;
    left.compensation = None;
    left.ending =
        Some(Ending { outcome: Outcome::Interfered, reason: "it must stay stopped".into() });
    let pod_uids = vec![pod.uid.clone()];
    changes.change(LedgerChange::ReleaseAllocation { pod_uids, is_restored: false });
    changes.set_member(index, left);
    changes
}

/// Stops the node, and reports that it is kept stopped on request.
fn stop(
    context: &Context<'_>,
    ledger: &Ledger,
    kept: &KeptStopped,
    pod: &Pod,
) -> Result<Changes, Blocker> {
    let manager = context.index.manager(&pod.uid)?;
    if manager.sequence < kept.sequence {
        // The rules are checked again, on the newest observation.
        may_be_stopped(context, ledger, pod)?;
        return Ok(Changes::action(Action::Stop {
            uid: pod.uid.clone(),
            sequence: kept.sequence,
            drain: context.policy.drain.longest(),
            resume: None,
            exit: false,
        }));
    }
    if let Some(action) = end_drain(context, pod, manager, kept.sequence, None, false) {
        return Ok(Changes::action(action));
    }
    let running = manager.desired == Desired::Running;
    let message = match (running, &manager.last_request) {
        (true, Some(last)) => {
            format!("{} started it although it must stay stopped; left running", last.by)
        }
        (true, None) => "it runs although it must stay stopped; left running".to_owned(),
        (false, _) => "kept stopped on request (spec.stopped or stayput.dev/stopped)".to_owned(),
    };
    let code = if running { Code::Interfered } else { Code::KeptStopped };
    Err(Blocker { code, message })
}

/// Stops a node that is to be kept stopped again before it was started.
fn stop_after_all(
    context: &Context<'_>,
    kept: &KeptStopped,
    pod: &Pod,
) -> Result<Changes, Blocker> {
    let manager = context.index.manager(&pod.uid)?;
    let sequence = manager.sequence.max(kept.sequence) + 1;
    let again = KeptStopped {
        releasing: false,
        sequence,
        config: ConfigChoice::Mounted,
        checksum: None,
        ..kept.clone()
    };
    Ok(Changes::of_ledger(LedgerChange::SetKeptStopped(again)))
}

/// Starts a node that is no longer to be kept stopped.
fn release(
    context: &Context<'_>,
    ledger: &Ledger,
    kept: &KeptStopped,
    pod: &Pod,
) -> Result<Changes, Blocker> {
    let manager = context.index.manager(&pod.uid)?;
    if ledger.owes_start(&pod.uid) {
        refuse(Code::Debts, "its pod is rolled back before it is started")?;
    }
    let is_decided = kept.releasing && manager.sequence >= kept.sequence;
    let is_refused = was_refused(manager, kept.sequence);
    // The start may only have made its manager refuse a stop of ours that was slower.
    if is_decided && (!is_refused || manager.desired == Desired::Running) {
        let mut changes = Changes::of_ledger(LedgerChange::RemoveKeptStopped(kept.clone()));
        let on = match kept.config {
            ConfigChoice::LastGood => {
                " on its last good config: the mounted one might keep it out of the cluster"
            }
            ConfigChoice::Mounted => "",
        };
        let (reason, message) = match manager.desired {
            Desired::Running => (Reason::NodeStarted, format!("{} is started{on}", pod.node)),
            Desired::Stopped => {
                let by = manager.last_client();
                let message = format!("{} is not started: {by} has stopped it since", pod.node);
                (Reason::NodeStopped, message)
            }
        };
        changes.event(Some(&pod.uid), reason, message);
        return Ok(changes);
    }
    if kept.releasing && is_ending(manager.state) {
        let message = "it is started once it is stopped".to_owned();
        return Err(Blocker { code: Code::Stopping, message });
    }
    // The config is chosen once, and again only if the manager refused it because another one is mounted by
    // now. So an apiserver that drops the chosen fields costs no write in each plan.
    if !kept.releasing || is_refused {
        let (config, checksum) = start_on(context, ledger, pod, manager);
        if !kept.releasing || (config, &checksum) != (kept.config, &kept.checksum) {
            let sequence = manager.sequence.max(kept.sequence) + 1;
            let kept = KeptStopped { releasing: true, sequence, config, checksum, ..kept.clone() };
            return Ok(Changes::of_ledger(LedgerChange::SetKeptStopped(kept)));
        }
    }
    Ok(Changes::action(Action::Start {
        uid: pod.uid.clone(),
        sequence: kept.sequence,
        checksum: kept.checksum.clone(),
        config: kept.config,
    }))
}

/// Config for a node that was kept stopped: the mounted one, by its checksum; but the last good one if on the
/// mounted one the node could not form one cluster with the nodes that run, or if that is unknown now. A
/// config that was never seen in any sources is no reason.
fn start_on(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
    manager: &Manager,
) -> (ConfigChoice, Option<String>) {
    if manager.desired == Desired::Running {
        // The engine was never stopped.
        return (ConfigChoice::Mounted, manager.runs_on().cloned());
    }
    let good = manager.last_good.as_deref().filter(|_| context.policy.rollback);
    if let (Some(good), Some(mounted)) = (good, manager.mounted.as_deref())
        && good != mounted
    {
        match needs_coordinated_between(context, ledger, pod, good, mounted) {
            Ok(Some(_)) => return (ConfigChoice::LastGood, None),
            Err(blocker) if blocker.code != Code::PendingRestart => {
                return (ConfigChoice::LastGood, None);
            }
            Ok(None) | Err(_) => {}
        }
    }
    (ConfigChoice::Mounted, manager.mounted.clone())
}
