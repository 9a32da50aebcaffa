//! Start debts: engines that we have stopped and that were not brought back in time. All fields of a start
//! are in the ledger, so it can be sent while the apiserver or the engine is unreachable, and a later
//! leader sends the same one.

use crate::changes::Changes;
use crate::flow::answers::{is_ending, is_opposite, is_overtaken, was_refused};
use crate::flow::debts::{before_start, is_due_on};
use crate::flow::member::bring_back::{
    compensation_for, rolls_back, start_of_compensation, stop_before_start,
};
use crate::flow::member::start::start_of;
use crate::flow::member::update::changes_before_start;
use crate::flow::member::update::rollback::{
    SetBack, label_kept_template, needs_a_stop, refused_part, until_set_back,
};
use crate::flow::observed::{if_gone_for_good, is_deleted_with_its_pods, is_to_be_stopped};
use crate::ledger::LedgerChange;
use crate::{
    Action, Blocker, Code, Context, Ledger, Manager, Member, MemberStep, Pod, Reason, StartDebt,
};
use stayput_api::{ConfigChoice, Desired, RequestKind, State};

/// Starts the engines with a start debt.
pub(crate) fn pay_starts(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    for debt in &ledger.debts.start {
        changes.merge(pay_start(context, ledger, debt));
    }
    changes
}

/// True if other nodes wait for this owed start. After a phase they do not: the pod may be on a Kubernetes
/// node that is gone for good. The rules count the node of the debt as down.
pub(crate) fn is_waited_for(context: &Context<'_>, debt: &StartDebt) -> bool {
    debt.since.is_none_or(|since| context.snapshot.now.since(since) < context.policy.phase_timeout)
}

fn pay_start(context: &Context<'_>, ledger: &Ledger, debt: &StartDebt) -> Changes {
    let uid = debt.pod_uid.as_str();
    let mut changes = Changes::default();
    let Some(pod) = context.index.pod(uid) else {
        return pod_absent(context, debt);
    };
    if debt.absent_since.is_some() {
        return replace(debt, StartDebt { absent_since: None, ..debt.clone() });
    }
    if let Some((update, told)) = debt.update.as_ref().and_then(|one| refused_part(one, pod)) {
        let mut changes =
            replace(debt, StartDebt { update: Some(Box::new(update)), ..debt.clone() });
        let message = format!("{} must be started{told}", debt.node);
        changes.event(Some(uid), Reason::NodeRestartAborted, message);
        return changes;
    }
    // Another version has written this debt. While the cluster is paused nobody waits for it, and an
    // apiserver that drops unknown fields would keep it from being paid.
    if debt.since.is_none() && !context.snapshot.cluster.paused {
        let since = Some(context.snapshot.now);
        return replace(debt, StartDebt { since, ..debt.clone() });
    }
    let manager = context.index.manager(uid);
    let known = manager.as_ref().ok().copied();
    let set_back = debt.update.as_ref().map_or(Ok(()), |one| until_set_back(one, pod, known));
    match &set_back {
        Err(SetBack::Note(noted)) => {
            return replace(debt, StartDebt { update: Some(noted.clone()), ..debt.clone() });
        }
        Err(SetBack::Act(action)) => return Changes::action((**action).clone()),
        Err(SetBack::Wait(_)) | Ok(()) => {}
    }
    if ledger.kept_stopped.iter().any(|kept| kept.pod_uid == debt.pod_uid) {
        return pay_kept_stopped(debt, pod, known);
    }
    if is_to_be_stopped(context, pod) {
        // Until that is in the ledger, the request to keep it stopped may be withdrawn.
        changes.wait(uid, Code::KeptStopped, "it must stay stopped");
        return changes;
    }
    let manager = match manager {
        Ok(manager) => manager,
        Err(blocker) if is_waited_for(context, debt) => {
            changes.block(uid, blocker);
            return changes;
        }
        Err(Blocker { code, message }) => {
            changes.wait(uid, code, format!("{message}{}", if_gone_for_good(context, pod)));
            return changes;
        }
    };
    bring_back(context, ledger, debt, pod, manager, set_back)
}

/// State of a pod whose start is owed, as its manager shows it. The first that applies counts, in this order.
enum Shown {
    /// Another client has sent it a request since.
    Overtaken,
    /// The engine has failed in a pod that is to be rolled back.
    FailedInPod,
    /// The engine is stopped, and its pod's rollback waits, for this reason.
    StoppedInPod(String),
    /// Our start has not arrived.
    NotStarted,
    RefusedStart,
    /// The engine starts in a pod that is not rolled back, and may fail again.
    StartsInPod,
    Started,
    /// Another client stopped it.
    Stopped,
    /// Our start was accepted, and the manager has not saved that yet.
    NotSaved,
}

fn shown(debt: &StartDebt, pod: &Pod, manager: &Manager, set_back: Result<(), SetBack>) -> Shown {
    let needs_a_stop = debt.update.as_ref().is_some_and(|fixed| needs_a_stop(fixed, pod));
    match (manager.desired, set_back) {
        _ if manager.sequence > debt.sequence => Shown::Overtaken,
        _ if needs_a_stop && matches!(manager.state, State::Failed | State::Backoff) => {
            Shown::FailedInPod
        }
        // Whatever the kubelet does, the manager restarts the engine by itself after a time.
        (Desired::Stopped, Err(SetBack::Wait(message))) => Shown::StoppedInPod(message),
        _ if manager.sequence < debt.sequence => Shown::NotStarted,
        _ if was_refused(manager, debt.sequence) => Shown::RefusedStart,
        _ if needs_a_stop && manager.state == State::Starting => Shown::StartsInPod,
        (Desired::Running, _) if manager.durable => Shown::Started,
        (Desired::Stopped, _) => Shown::Stopped,
        (Desired::Running, _) => Shown::NotSaved,
    }
}

/// Starts the engine in its pod. `set_back`: the next step of the pod's rollback, if it is not complete.
fn bring_back(
    context: &Context<'_>,
    ledger: &Ledger,
    debt: &StartDebt,
    pod: &Pod,
    manager: &Manager,
    set_back: Result<(), SetBack>,
) -> Changes {
    let wait = |code, message: String| {
        let mut changes = Changes::default();
        changes.wait(&debt.pod_uid, code, message);
        changes
    };
    let before_start = || before_start(context, ledger, debt, pod, manager);
    match shown(debt, pod, manager, set_back) {
        Shown::Overtaken => start_paid(debt, "another client has sent it a request since"),
        Shown::FailedInPod => stop_failed(debt, manager),
        Shown::StoppedInPod(message) => wait(Code::Debts, message),
        Shown::NotStarted => before_start().unwrap_or_else(|| send_start(debt, manager)),
        Shown::RefusedStart => before_start().unwrap_or_else(|| match debt.config {
            // There is no other config to start on; the manager decides again on the same request.
            ConfigChoice::Mounted => send_start(debt, manager),
            ConfigChoice::LastGood => {
                let (sequence, config) = (manager.sequence + 1, ConfigChoice::Mounted);
                replace(debt, StartDebt { sequence, config, ..debt.clone() })
            }
        }),
        Shown::StartsInPod => {
            wait(Code::Debts, "its engine starts in a pod that is not rolled back".into())
        }
        Shown::Started => {
            // The pod's label is waited for no longer than a start.
            let stays = debt.update.as_ref().filter(|_| is_waited_for(context, debt));
            match stays.and_then(|fixed| label_kept_template(fixed, pod)) {
                Some(action) => Changes::action(action),
                None => start_paid(debt, "it was started"),
            }
        }
        Shown::Stopped => start_paid(debt, "another client stopped it"),
        Shown::NotSaved => {
            let message = "its start was accepted, but its manager has not saved that yet";
            wait(Code::NotDurable, message.into())
        }
    }
}

/// Stops an engine that has failed before its pod is rolled back: the pod of an engine that its manager may
/// start at any moment is not changed.
fn stop_failed(debt: &StartDebt, manager: &Manager) -> Changes {
    let stop =
        debt.stop_sequence.filter(|stop| manager.sequence < *stop || was_refused(manager, *stop));
    let Some(sequence) = stop else {
        let above = manager.sequence.max(debt.sequence) + 1;
        let next = StartDebt { stop_sequence: Some(above), sequence: above + 1, ..debt.clone() };
        return replace(debt, next);
    };
    Changes::action(stop_before_start(&debt.pod_uid, sequence, debt.config, manager))
}

/// Pays the debt of a node that is kept stopped: it needs no start, and its pod is rolled back once its
/// engine is stopped.
fn pay_kept_stopped(debt: &StartDebt, pod: &Pod, manager: Option<&Manager>) -> Changes {
    let is_undone = !debt.update.as_ref().is_some_and(|fixed| needs_a_stop(fixed, pod));
    let is_overtaken = manager.is_some_and(|manager| manager.sequence > debt.sequence);
    if is_undone || is_overtaken {
        return start_paid(debt, "it is kept stopped now");
    }
    let mut changes = Changes::default();
    changes.wait(&debt.pod_uid, Code::Debts, "its pod is rolled back once its engine is stopped");
    changes
}

/// Handles a debt whose pod is not listed. Another pod of the same node proves that ours is gone. A list
/// without the pod may be incomplete: it counts once the pod has been absent for a phase.
fn pod_absent(context: &Context<'_>, debt: &StartDebt) -> Changes {
    if context.snapshot.cluster.unselected.contains(&debt.pod_uid) {
        let mut changes = Changes::default();
        let message = format!(
            "the engine of {} must be started; its pod is there, and spec.pods.selector matches no pod: \
             correct the selector",
            debt.node
        );
        changes.wait_all(Code::Debts, message);
        return changes;
    }
    let now = context.snapshot.now;
    let is_replaced = context.index.pods().any(|pod| pod.node == debt.node);
    let is_long = |since| now.since(since) >= context.policy.phase_timeout;
    if is_replaced || debt.absent_since.is_some_and(is_long) || is_deleted_with_its_pods(context) {
        return start_paid(debt, "its pod is gone");
    }
    if debt.absent_since.is_none() {
        return replace(debt, StartDebt { absent_since: Some(now), ..debt.clone() });
    }
    let mut changes = Changes::default();
    let message = format!("the engine of {} must be started; its pod is gone", debt.node);
    changes.wait_all(Code::Debts, message);
    changes
}

pub(crate) fn replace(debt: &StartDebt, new: StartDebt) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::RemoveStartDebt(debt.clone()));
    changes.change(LedgerChange::AddStartDebt(new));
    changes
}

fn send_start(debt: &StartDebt, manager: &Manager) -> Changes {
    if is_ending(manager.state) || manager.state == State::Stuck {
        let mut changes = Changes::default();
        changes.wait(&debt.pod_uid, Code::Debts, "it is started once it is stopped");
        return changes;
    }
    Changes::action(start_of_debt(debt))
}

/// The start request of a debt.
fn start_of_debt(debt: &StartDebt) -> Action {
    Action::Start {
        uid: debt.pod_uid.clone(),
        sequence: debt.sequence,
        checksum: debt.checksum.clone(),
        config: debt.config,
    }
}

fn start_paid(debt: &StartDebt, why: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::RemoveStartDebt(debt.clone()));
    let message = format!("{} needs no start any more: {why}", debt.node);
    changes.event(None, Reason::DebtPaid, message);
    changes
}

/// Starts of engines that are stopped and whose start, with its sequence, is in this ledger. `rollback`:
/// nodes are brought back on their last good config. `manager` reads a manager's status, if known, by the uid
/// of its pod. `is_to_be_stopped`: true if a person wants the node of this pod stopped, which the ledger need
/// not have yet.
pub fn starts_in_ledger(
    ledger: &Ledger,
    rollback: bool,
    manager: impl Fn(&str) -> Option<Manager>,
    is_to_be_stopped: impl Fn(&str) -> bool,
) -> Vec<Action> {
    let planned = startable(ledger).filter_map(|member| {
        let manager = manager(&member.pod_uid)?;
        planned_start(member, &manager)
    });
    let rollback = rolls_back(rollback, ledger);
    let back = ledger.members().filter_map(|member| {
        let manager = manager(&member.pod_uid)?;
        start_back(member, &manager, rollback)
    });
    // A pod that is to be rolled back is rolled back first, which needs the apiserver.
    let owed = ledger.debts.start.iter().filter(|debt| {
        debt.update.is_none()
            && !ledger.kept_stopped.iter().any(|kept| kept.pod_uid == debt.pod_uid)
            && !is_to_be_stopped(&debt.pod_uid)
    });
    let owed = owed.filter_map(|debt| {
        let manager = manager(&debt.pod_uid)?;
        let is_due = manager.state == State::Stopped
            && manager.sequence < debt.sequence
            && is_due_on(ledger, debt, &manager);
        is_due.then(|| start_of_debt(debt))
    });
    planned.chain(back).chain(owed).collect()
}

/// Uids of the pods whose managers have decided on a stop of this ledger, and whose start comes next: that
/// needs no answer of the engine.
pub fn awaited_starts<'a>(
    ledger: &'a Ledger,
    manager: impl Fn(&str) -> Option<Manager> + 'a,
) -> impl Iterator<Item = &'a str> {
    let is_awaited = move |member: &&Member| {
        manager(&member.pod_uid).is_some_and(|is| is_stop_last(member, &is))
    };
    startable(ledger).filter(is_awaited).map(|member| member.pod_uid.as_str())
}

/// True if a start of this ledger can be sent now, because the stop before it is done.
pub fn start_is_due(ledger: &Ledger, manager: impl Fn(&str) -> Option<Manager>) -> bool {
    startable(ledger).any(|member| {
        manager(&member.pod_uid).is_some_and(|is| planned_start(member, &is).is_some())
    })
}

/// The members that are started as soon as they are stopped.
fn startable(ledger: &Ledger) -> impl Iterator<Item = &Member> {
    let may_start = ledger
        .restart
        .as_ref()
        .is_some_and(|restart| !restart.is_coordinated() || restart.frozen.is_some());
    ledger.members().filter(move |_| may_start)
}

/// The start of a stopped member, if its stop was the last request that its manager has decided on and its
/// config is mounted.
fn planned_start(member: &Member, manager: &Manager) -> Option<Action> {
    let is_due = is_stop_last(member, manager)
        && manager.state == State::Stopped
        && manager.mounted == member.expected;
    is_due.then(|| start_of(member))
}

/// The start of a member that is brought back, if its compensation would be the same now: another config, or
/// a stop before it, is written to the ledger first. The engine must be down, and the last request that its
/// manager has decided on must be ours.
fn start_back(member: &Member, manager: &Manager, rollback: bool) -> Option<Action> {
    let back = member.compensation.as_ref().filter(|_| member.step == MemberStep::Aborting)?;
    let is_down = matches!(manager.state, State::Stopped | State::Failed | State::Backoff);
    let may_start = is_down && !changes_before_start(member);
    let is_due = may_start
        && match back.stop_sequence {
            Some(stop) => {
                let is_ours = !is_opposite(manager, stop, RequestKind::Stop);
                manager.sequence == stop && is_ours && !was_refused(manager, stop)
            }
            None => {
                let ours = [member.stop_sequence, member.start_sequence];
                let now = compensation_for(member, Some(manager), rollback, false);
                ours.contains(&manager.sequence)
                    && !is_overtaken(manager, member)
                    && (now.stop_sequence, now.config) == (None, back.config)
            }
        };
    is_due.then(|| start_of_compensation(member, back))
}

/// True if the stop of this member was the last request that its manager has decided on. False for a pod that
/// must be changed before the start, which needs the apiserver.
fn is_stop_last(member: &Member, manager: &Manager) -> bool {
    member.step == MemberStep::Restarting
        && !changes_before_start(member)
        && manager.sequence == member.stop_sequence
        && !was_refused(manager, member.stop_sequence)
}
