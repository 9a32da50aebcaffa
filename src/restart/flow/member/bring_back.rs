//! Aborts a member's restart and brings the member back: its compensation (config and sequences of a start)
//! is written to the ledger, carried out, and changed if its manager shows that another one is needed. A
//! start that cannot be sent in time becomes a debt.

use crate::changes::Changes;
use crate::flow::answers::{
    describe_state, has_resumed, interfered, is_ending, is_opposite, is_overtaken, is_refused,
    start_above, was_refused,
};
use crate::flow::engine::clean_up;
use crate::flow::member::stop::resume_on;
use crate::flow::member::until_limit_lifted;
use crate::flow::member::update::rollback::{label_kept_template, refused_part};
use crate::flow::member::update::{rollback, step_of};
use crate::flow::observed::{has_joined, is_over_time, lists_old_process};
use crate::flow::turn::{Turn, TurnView, wait};
use crate::ledger::{LedgerChange, RestartChange};
use crate::{
    Action, Blocker, Code, Compensation, Context, Ending, Ledger, Manager, Member, MemberStep,
    MemberUpdate, Outcome, Reason, Restart, StartDebt, UpdateStep,
};
use stayput_api::{ConfigChoice, Desired, RequestKind, State};

/// State of a member that is being brought back. The first that applies counts, in this order.
enum Shown<'t> {
    /// The apiserver refuses to roll back a part of the pod: the update with that part, and the end of the
    /// reason.
    RefusedRollback(Box<MemberUpdate>, String),
    /// Another pod has taken the place of the member's pod.
    Replaced,
    Unreachable(Blocker),
    /// The manager refused a request with a higher sequence than our start: it would refuse our start, too.
    RefusedHigher(&'t Manager),
    /// A request of another client is in force.
    Interfered(&'t Manager),
    /// Our start has not arrived.
    NotStarted(&'t Manager),
    RefusedStart(&'t Manager),
    /// Our start was accepted, and the manager has not saved that yet.
    NotSaved,
    /// Our start was accepted, and the pod is still to be changed beside the engine, by this turn. The start
    /// may have been sent while the apiserver was away.
    NotRolledBack(Turn),
    Started(&'t Manager),
}

fn shown<'t>(view: &TurnView<'t, '_>, back: &Compensation) -> Shown<'t> {
    let TurnView { context, member, .. } = *view;
    let pod = context.index.pod(&member.pod_uid);
    if let Some((update, told)) =
        member.update.as_ref().zip(pod).and_then(|(fixed, pod)| refused_part(fixed, pod))
    {
        return Shown::RefusedRollback(Box::new(update), told);
    }
    let manager = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager,
        Err(blocker)
            if blocker.code == Code::PodGone && context.index.successor(member).is_some() =>
        {
            return Shown::Replaced;
        }
        Err(blocker) => return Shown::Unreachable(blocker),
    };
    if manager.sequence > back.start_sequence && is_refused(manager) {
        return Shown::RefusedHigher(manager);
    }
    // A stop that another client sent before our start has a sequence below that of the compensation.
    let is_stopped_by_another = manager.desired == Desired::Stopped
        && manager.sequence <= member.start_sequence
        && is_overtaken(manager, member);
    if is_stopped_by_another
        || manager.sequence > back.start_sequence
        || is_opposite(manager, back.start_sequence, RequestKind::Start)
        || back.stop_sequence.is_some_and(|stop| is_opposite(manager, stop, RequestKind::Stop))
    {
        return Shown::Interfered(manager);
    }
    if manager.sequence < back.start_sequence {
        return Shown::NotStarted(manager);
    }
    if was_refused(manager, back.start_sequence) {
        return Shown::RefusedStart(manager);
    }
    if !manager.durable || manager.desired != Desired::Running {
        return Shown::NotSaved;
    }
    if rollback::is_due_beside_engine(member, pod)
        && let Err(turn) = rollback::until_member_set_back(member, pod, Some(manager))
    {
        return Shown::NotRolledBack(turn);
    }
    Shown::Started(manager)
}

/// The next step of a member that is being brought back.
pub(crate) fn bring_back(view: &TurnView<'_, '_>) -> Turn {
    let TurnView { context, member, .. } = *view;
    let (Some(back), Some(ending)) = (&member.compensation, &member.ending) else {
        return Turn::untouched("its entry in the ledger is incomplete");
    };
    let is_late = is_over_time(context, member, 1);
    let owe_start = |then: &str| {
        let reason = format!("{}{then}", ending.reason);
        owe_start(context, member, back, None, ending.outcome, reason)
    };
    match shown(view, back) {
        Shown::RefusedRollback(update, told) => {
            let mut again = Member { update: Some(update), ..member.clone() };
            let outcome = outcome_of(context, &again, back.config);
            again.ending = Some(Ending { outcome, reason: format!("{}{told}", ending.reason) });
            Turn::change(again)
        }
        Shown::Replaced => Turn::finish(ending.clone()),
        Shown::RefusedHigher(manager) => {
            change_compensation(view, ending, better(view, manager), manager.sequence)
        }
        Shown::Interfered(manager) => interfered(manager, member),
        Shown::Unreachable(blocker) if is_late => {
            owe_start(&format!("; then no answer: {}", blocker.message))
        }
        Shown::NotStarted(manager) | Shown::RefusedStart(manager) if is_late => {
            owe_start(&format!("; then {}", describe_state(manager)))
        }
        Shown::NotSaved | Shown::NotRolledBack(_) if is_late => owe_start(""),
        Shown::Started(_) if is_late => Turn::finish(ending.clone()),
        Shown::Unreachable(blocker) => {
            // A container that runs no engine can still be changed.
            let pod = context.index.pod(&member.pod_uid);
            match rollback::until_member_set_back(member, pod, None) {
                Ok(()) => until_limit_lifted(view, Turn::Wait(blocker)),
                Err(turn) => turn,
            }
        }
        Shown::NotStarted(manager) => send_back(view, manager, back, ending),
        Shown::RefusedStart(manager) => after_refusal(view, manager, back, ending),
        Shown::NotSaved => {
            let message = "its start was accepted, but its manager has not saved that yet";
            wait(Code::NotDurable, message)
        }
        Shown::NotRolledBack(turn) => turn,
        Shown::Started(manager) => match until_back(view, manager) {
            Ok(()) => Turn::finish(ending.clone()),
            Err(turn) => turn,
        },
    }
}

/// Passes once a member that was started again is back, or its manager has given its engine up. The pod gets
/// the label of the template that it stays with.
fn until_back(view: &TurnView<'_, '_>, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    let changed = member.update.as_ref().zip(context.index.pod(&member.pod_uid));
    if let Some(action) = changed.and_then(|(fixed, pod)| label_kept_template(fixed, pod)) {
        let message = "its pod gets the label of the template that it keeps";
        return Err(Turn::act_and_wait(action, Code::Relabelling, message));
    }
    if matches!(manager.state, State::Failed | State::Backoff) {
        return Ok(());
    }
    // An engine that was never stopped still has its old process.
    let never_left = manager.state == State::Running && lists_old_process(context, member);
    if !has_joined(context, member)? && !never_left {
        return Err(wait(Code::Aborting, "started again; the cluster does not list it yet"));
    }
    clean_up(view)
}

/// Sends the stop of a compensation, if it has one, and then its start.
fn send_back(
    view: &TurnView<'_, '_>,
    manager: &Manager,
    back: &Compensation,
    ending: &Ending,
) -> Turn {
    let TurnView { context, member, .. } = *view;
    // An earlier stop has arrived meanwhile: the planned start was for a running engine, and would start this
    // stopped one on the config that is given up. Or an earlier start has arrived, and the pod must be rolled
    // back.
    let sent = back.stop_sequence.is_some_and(|stop| manager.sequence >= stop);
    let better = better(view, manager);
    // The pod is to be rolled back, and the compensation did not know that.
    let needs_a_stop = back.stop_sequence.is_none()
        && better.stop_sequence.is_some()
        && rollback::needs_a_stop_of(member, context.index.pod(&member.pod_uid));
    // The pod keeps the change that the stop was for.
    let is_needless =
        back.stop_sequence.is_some() && better.stop_sequence.is_none() && member.is_not_set_back();
    if !sent
        && (better.config != back.config || needs_a_stop || is_needless)
        && manager.sequence >= member.stop_sequence
    {
        return change_compensation(view, ending, better, back.start_sequence);
    }
    if let Some(stop) = back.stop_sequence
        && manager.sequence < stop
    {
        return Turn::act(stop_before_start(&member.pod_uid, stop, back.config, manager));
    }
    start_back(view, manager, back)
}

/// The compensation that would be chosen now.
fn better(view: &TurnView<'_, '_>, manager: &Manager) -> Compensation {
    let TurnView { context, ledger, member, .. } = *view;
    let needs_a_stop = rollback::needs_a_stop_of(member, context.index.pod(&member.pod_uid));
    let rollback = rolls_back(context.policy.rollback, ledger);
    compensation_for(member, Some(manager), rollback, needs_a_stop)
}

/// Sends the start of a compensation, once the engine is no longer being stopped and its pod is rolled back.
fn start_back(view: &TurnView<'_, '_>, manager: &Manager, back: &Compensation) -> Turn {
    let TurnView { context, member, .. } = *view;
    if is_ending(manager.state) || manager.state == State::Stuck {
        let message = format!("{}; it is started after that", describe_state(manager));
        return wait(Code::Aborting, message);
    }
    let pod = context.index.pod(&member.pod_uid);
    if let Err(turn) = rollback::until_member_set_back(member, pod, Some(manager)) {
        return turn;
    }
    Turn::act(start_of_compensation(member, back))
}

/// The turn after the start of a compensation was refused: the engine is in another state than expected, or
/// has no last good config. Then only the mounted config is left.
fn after_refusal(
    view: &TurnView<'_, '_>,
    manager: &Manager,
    back: &Compensation,
    ending: &Ending,
) -> Turn {
    let mut next = better(view, manager);
    if next.stop_sequence.is_none() && back.config == ConfigChoice::LastGood {
        next.config = ConfigChoice::Mounted;
    }
    if next.stop_sequence.is_none() && next.config == back.config {
        // There is no other config to start on; the manager decides again on the same request.
        return start_back(view, manager, back);
    }
    change_compensation(view, ending, next, back.start_sequence)
}

/// Replaces the compensation by `next`, with sequences above `above`.
fn change_compensation(
    view: &TurnView<'_, '_>,
    ending: &Ending,
    mut next: Compensation,
    above: u64,
) -> Turn {
    let TurnView { context, member, .. } = *view;
    let first = next.stop_sequence.unwrap_or(next.start_sequence);
    let up = (above + 1).saturating_sub(first);
    next.stop_sequence = next.stop_sequence.map(|stop| stop + up);
    next.start_sequence += up;
    let outcome = outcome_of(context, member, next.config);
    let mut again = member.clone();
    again.compensation = Some(next);
    again.ending = Some(Ending { outcome, ..ending.clone() });
    Turn::change(again)
}

/// Ends a member whose pod is gone or whose manager is unreachable, in a restart that only goes forward: its
/// start is a debt until it is certain that the pod does not come back.
pub(crate) fn owe_start_of_gone(context: &Context<'_>, member: &Member, reason: &str) -> Turn {
    let (start_sequence, config) = (start_above(member, 0), ConfigChoice::Mounted);
    let back = Compensation { stop_sequence: None, start_sequence, config };
    // Others may run on the expected config by then.
    let checksum = member.expected.clone();
    owe_start(context, member, &back, checksum, Outcome::Aborted, reason.to_owned())
}

/// Ends a member whose start cannot be sent now: the start becomes a debt.
fn owe_start(
    context: &Context<'_>,
    member: &Member,
    back: &Compensation,
    checksum: Option<String>,
    outcome: Outcome,
    reason: String,
) -> Turn {
    let now = context.snapshot.now;
    let debt = StartDebt::of(member, back.start_sequence, back.config, now);
    let debt = StartDebt { checksum, ..debt };
    let mut changes = Changes::of_ledger(LedgerChange::AddStartDebt(debt));
    let message = format!("{} must be started as soon as its manager answers", member.node);
    changes.event(Some(&member.pod_uid), Reason::DebtIncurred, message);
    Turn::Finish(Ending { outcome, reason }, Box::new(changes))
}

/// Aborts the restart of a member. The entry is written before anything is sent.
pub(crate) fn abort(view: &TurnView<'_, '_>, reason: &str) -> Changes {
    let TurnView { context, index, member, .. } = *view;
    let manager = context.index.manager(&member.pod_uid).ok();
    let pod = context.index.pod(&member.pod_uid);
    let needs_a_stop = rollback::needs_a_stop_of(member, pod);
    let compensation = compensation_for(member, manager, context.policy.rollback, needs_a_stop);
    let (outcome, back) = set_back(context, index, member, compensation, reason);
    let mut changes = Changes::default();
    let how = if rollback::is_due_of(member, pod) { ", with its pod rolled back" } else { "" };
    let message = format!("{} is started again{how}: {reason}", member.node);
    changes.event(Some(&member.pod_uid), Reason::NodeRestartAborted, message);
    changes.end_with(outcome, format!("{}: {reason}", member.node));
    changes.change(back);
    changes
}

/// The outcome of a member that is being brought back, and the change of the ledger that records it.
pub(crate) fn set_back(
    context: &Context<'_>,
    index: usize,
    member: &Member,
    compensation: Compensation,
    reason: &str,
) -> (Outcome, RestartChange) {
    let outcome = outcome_of(context, member, compensation.config);
    let mut back = member.clone();
    back.step = MemberStep::Aborting;
    back.since = context.snapshot.now;
    back.compensation = Some(compensation);
    back.ending = Some(Ending { outcome, reason: reason.to_owned() });
    (outcome, RestartChange::SetMember { index, member: Box::new(back) })
}

/// Chooses how to bring a member back. With `rollback` on the last good config, unless that is mounted or the
/// engine still runs on its old config; otherwise on the mounted config. `needs_a_stop`: the pod is rolled
/// back first, for which a running engine is stopped.
pub(crate) fn compensation_for(
    member: &Member,
    manager: Option<&Manager>,
    rollback: bool,
    needs_a_stop: bool,
) -> Compensation {
    let above = manager.map_or(0, |manager| manager.sequence).max(member.start_sequence) + 1;
    let start = |config| Compensation { stop_sequence: None, start_sequence: above, config };
    let Some(manager) = manager else {
        // If the engine still runs, its manager refuses this start, and the engine stays as it is.
        // If it was stopped, it must be started on this config only.
        return start(if rollback { ConfigChoice::LastGood } else { ConfigChoice::Mounted });
    };
    let last_good = manager.last_good.as_ref().filter(|_| rollback);
    let is_stopped = manager.state == State::Stopped && manager.desired == Desired::Stopped;
    if needs_a_stop && !is_stopped && manager.sequence >= member.stop_sequence {
        let returns = last_good.is_some() && manager.mounted.as_ref() != last_good;
        let config = if returns { ConfigChoice::LastGood } else { ConfigChoice::Mounted };
        return Compensation { stop_sequence: Some(above), start_sequence: above + 1, config };
    }
    let Some(last_good) = last_good else {
        return start(ConfigChoice::Mounted);
    };
    match manager.state {
        // The engine runs: on its old config, or on the config of our start.
        State::Starting | State::Running => {
            let is_stopped_by_us =
                manager.sequence >= member.start_sequence || has_resumed(manager, member);
            if manager.runs_on() == Some(last_good) || !is_stopped_by_us {
                return start(ConfigChoice::Mounted);
            }
            let config = ConfigChoice::LastGood;
            Compensation { stop_sequence: Some(above), start_sequence: above + 1, config }
        }
        // The engine is to be started again.
        State::Stopped
        | State::Stopping
        | State::Killing
        | State::Backoff
        | State::Failed
        | State::Stuck => {
            let is_mounted = manager.mounted.as_ref() == Some(last_good);
            start(if is_mounted { ConfigChoice::Mounted } else { ConfigChoice::LastGood })
        }
    }
}

/// True if members are brought back to the last good config: a coordinated restart turns back as a whole,
/// whatever the policy sets for single nodes (`rollback`).
pub(crate) fn rolls_back(rollback: bool, ledger: &Ledger) -> bool {
    rollback || ledger.restart.as_ref().is_some_and(Restart::is_coordinated)
}

/// The stop of an engine before the start that brings it back on this config. If that start does not come, the
/// manager starts the engine on the same config.
pub(crate) fn stop_before_start(
    uid: &str,
    sequence: u64,
    config: ConfigChoice,
    manager: &Manager,
) -> Action {
    let checksum = match config {
        ConfigChoice::LastGood => manager.last_good.clone(),
        ConfigChoice::Mounted => None,
    };
    let (uid, resume) = (uid.to_owned(), Some(resume_on(checksum)));
    Action::Stop { uid, sequence, drain: 0, resume, exit: false }
}

/// The start that brings a member back.
pub(crate) fn start_of_compensation(member: &Member, back: &Compensation) -> Action {
    Action::Start {
        uid: member.pod_uid.clone(),
        sequence: back.start_sequence,
        checksum: None,
        config: back.config,
    }
}

/// The outcome of a member that comes back on this config: rolled back if that is the last good one, or if
/// its pod is as it was before an update for which it was stopped. Aborted in any case if we deleted the pod
/// to replace it, or if the apiserver refuses to roll the pod back.
pub(crate) fn outcome_of(context: &Context<'_>, member: &Member, config: ConfigChoice) -> Outcome {
    let pod = context.index.pod(&member.pod_uid);
    let is_stopped = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager.sequence >= member.stop_sequence,
        Err(_) => rollback::is_due_of(member, pod),
    };
    match config {
        _ if pod.is_none() && step_of(member) == UpdateStep::Replace => Outcome::Aborted,
        _ if member.is_not_set_back() => Outcome::Aborted,
        ConfigChoice::LastGood => Outcome::RolledBack,
        ConfigChoice::Mounted if is_stopped && rollback::has_undo(member) => Outcome::RolledBack,
        ConfigChoice::Mounted => Outcome::Aborted,
    }
}
