//! The `start` phase of one node: from stopped until it is proven to be back in the cluster. It is started
//! once the config of its sources is mounted.

use crate::changes::Changes;
use crate::flow::answers::{
    SEQUENCE_GAP, describe_state, is_ending, runs_as_expected, runs_on_another, start_failure,
    was_refused,
};
use crate::flow::engine::clean_up;
use crate::flow::labels::relabel;
use crate::flow::member::replaced::may_be_replaced;
use crate::flow::member::stop::{describe, end_drain, resume_on};
use crate::flow::member::until_recovered;
use crate::flow::member::update::container::why_others_are_not_ready;
use crate::flow::member::update::{self, environment, is_carried_out, until_carried_out};
use crate::flow::observed::{expected_now, has_joined, is_over_time, recovering_operator};
use crate::flow::requests::configs::why_not_started;
use crate::flow::turn::{GiveBack, Turn, TurnView, wait};
use crate::{
    Action, Blocker, Code, Context, Ending, Manager, Member, MemberUpdate, Outcome, Pod, Time,
    annotation,
};
use stayput_api::checksum::short;
use stayput_api::{ConfigChoice, State};

/// State of a member between its stop and its start. The first that applies counts, in this order.
enum Stopped {
    /// The manager has started the engine by itself on the config of our start: we or the apiserver were away.
    Resumed,
    /// The manager has started the engine by itself on another config, and would refuse our start.
    ResumedOnAnother,
    /// The stop is not done yet.
    NotYet,
    Done,
}

fn stopped(view: &TurnView<'_, '_>, manager: &Manager) -> Stopped {
    let TurnView { ledger, member, .. } = *view;
    // Its next turn would stop the engine once more.
    let has_next_turn = member.update.is_none()
        && ledger.restart.as_ref().is_none_or(|restart| restart.ending.is_none());
    if runs_as_expected(manager, member) {
        Stopped::Resumed
    } else if runs_on_another(manager, member) && has_next_turn {
        Stopped::ResumedOnAnother
    } else if manager.state == State::Stopped {
        Stopped::Done
    } else {
        Stopped::NotYet
    }
}

/// The turn after the stop was accepted: waits until the engine is stopped, and sends the start. The cluster
/// may still list the old process then: it has removed it before a JVM has booted, and a new process counts
/// as back only by an id of its own.
pub(crate) fn start(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Turn {
    let TurnView { context, member, .. } = *view;
    let is_late = is_over_time(context, member, 1);
    match stopped(view, manager) {
        Stopped::Resumed if !is_carried_out(member, pod) => {
            // The pod cannot be changed while the engine runs.
            let message = "its manager has started its engine before its pod was changed";
            if is_late { Turn::Abort(message.into()) } else { wait(Code::NewContainer, message) }
        }
        Stopped::Resumed if is_late && had_its_time(view, manager) => {
            let state = describe_state(manager);
            Turn::Abort(format!("its manager does not accept our start: {state}"))
        }
        // No plan has seen it meanwhile: its time to come back begins now.
        Stopped::Resumed if is_late => {
            Turn::change(Member { since: context.snapshot.now, ..member.clone() })
        }
        Stopped::Resumed => send_start(member),
        Stopped::ResumedOnAnother => {
            let reason = "its manager has started its engine by itself, on another config";
            Turn::GiveBack(GiveBack { reason: reason.into(), by_rule: false })
        }
        Stopped::NotYet | Stopped::Done
            if is_over_time(context, member, update::phases(member)) =>
        {
            Turn::Abort(format!("not started in time: {}", describe_state(manager)))
        }
        Stopped::NotYet if is_late && !is_ending(manager.state) => {
            Turn::Abort(format!("not stopped in time: {}", describe_state(manager)))
        }
        Stopped::NotYet => end_drain_or_wait(view, pod, manager),
        Stopped::Done => match until_startable(view, pod, manager) {
            Err(turn) => turn,
            Ok(()) => send_start(member),
        },
    }
}

/// The turn while the engine is being stopped: a drain that is needlessly long is ended.
fn end_drain_or_wait(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Turn {
    let TurnView { context, member, .. } = *view;
    let resume = Some(resume_on(None));
    let exit = update::exits(member, pod);
    if let Some(action) = end_drain(context, pod, manager, member.stop_sequence, resume, exit) {
        return Turn::act(action);
    }
    let drain = describe(context, pod, manager);
    let state = || format!("its engine is {}", manager.state.as_str());
    wait(Code::Stopping, drain.unwrap_or_else(state))
}

/// Passes once a stopped member can be started: its pod is changed, and its variables and its config are
/// mounted.
fn until_startable(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Result<(), Turn> {
    if let Some(reason) = why_not_started(view, pod) {
        return Err(Turn::Abort(reason));
    }
    may_be_replaced(view, pod)?;
    until_carried_out(view, pod)?;
    environment::until_mounted(view.member.update.as_deref(), pod, manager)?;
    until_mounted(view, pod, manager, true)
}

/// True if an engine that its manager restarted by itself has had a phase to come back while we watched: one
/// that is ready has served for a phase, and one that is not has had no process end since `member.since`.
fn had_its_time(view: &TurnView<'_, '_>, manager: &Manager) -> bool {
    let TurnView { context, member, .. } = *view;
    if let Some(since) = manager.ready_since {
        return context.snapshot.now.since(since) >= context.policy.phase_timeout;
    }
    let ended = manager.last_exit.as_ref().and_then(|exit| exit.ended);
    ended.is_none_or(|at| manager.in_our_time(at) < member.since)
}

/// Sends our start of a member, on its expected config.
pub(crate) fn send_start(member: &Member) -> Turn {
    Turn::act(start_of(member))
}

/// Our start of a member, on its expected config.
pub(crate) fn start_of(member: &Member) -> Action {
    Action::Start {
        uid: member.pod_uid.clone(),
        sequence: member.start_sequence,
        checksum: member.expected.clone(),
        config: ConfigChoice::Mounted,
    }
}

/// State of a member whose manager has decided on its start. The first that applies counts, in this order.
enum Started {
    /// Nothing was started: the manager refused the start.
    Refused,
    /// The member was proven back in its changed pod, and then this has happened.
    ProvenUntil(String),
    /// The engine ended, or runs on another config, for this reason.
    Failed(String),
    Late,
    /// The member is late, and only its labels may be missing.
    LateWithLabels,
    InTime,
}

fn started(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Started {
    let TurnView { context, member, .. } = *view;
    if was_refused(manager, member.start_sequence) {
        return Started::Refused;
    }
    let failure = start_failure(manager, member);
    let serves =
        failure.is_none() && manager.is_ready() && has_joined(context, member) != Ok(false);
    let is_late = is_over_time(context, member, update::phases(member));
    let is_updated = is_updated(context, member, pod, manager);
    match failure {
        _ if !serves && was_proven(member, pod) => {
            let state = describe_state(manager);
            Started::ProvenUntil(format!("it does not serve any more: {state}"))
        }
        Some(reason) => Started::Failed(reason),
        None if is_late && !is_updated && was_proven(member, pod) => {
            Started::ProvenUntil("it is not seen any more".into())
        }
        None if is_late && !is_updated => Started::Late,
        None if is_late => Started::LateWithLabels,
        None => Started::InTime,
    }
}

/// The turn after the manager has decided on the start: waits until a new process is proven to serve.
pub(crate) fn prove(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Turn {
    let TurnView { member, .. } = *view;
    let proven = match started(view, pod, manager) {
        // The manager decides again on the same request.
        Started::Refused => return start(view, pod, manager),
        Started::ProvenUntil(since) => return done_until(&since),
        Started::Failed(reason) => return Turn::Abort(reason),
        Started::Late => {
            let what = why_others_are_not_ready(member, pod)
                .or_else(|| why_pod_is_not_ready(view.context, pod));
            let what = what.unwrap_or_else(|| describe_state(manager));
            return Turn::Abort(format!("not back in time: {what}"));
        }
        Started::LateWithLabels => {
            until_labelled(view, pod).and_then(|()| until_proven(view, pod, manager))
        }
        Started::InTime => until_proven(view, pod, manager),
    };
    match proven {
        Ok(()) => Turn::finish(Ending::done()),
        Err(turn) => turn,
    }
}

/// Passes once a new process is proven to serve and nothing of its restart is left.
fn until_proven(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    if !has_joined(context, member)? {
        return Err(wait(Code::Joining, "started; the cluster does not list it yet"));
    }
    let is_carried_out = is_carried_out(member, pod);
    // The node's shards come back while its engine becomes ready.
    if is_carried_out {
        clean_up(view)?;
    }
    if !manager.is_ready() {
        return Err(wait(Code::NotReady, "it has joined and is not ready yet"));
    }
    if let Some(why) = why_pod_is_not_ready(context, pod) {
        return Err(wait(Code::NotReady, why));
    }
    if !is_carried_out {
        let message = "the node is back, but its pod does not have the new spec yet";
        return Err(wait(Code::NewContainer, message));
    }
    if let Some(why) = why_others_are_not_ready(member, pod) {
        return Err(wait(Code::NotReady, why));
    }
    let wanted = member.update.as_ref().zip(pod.live.as_ref());
    if let Some(action) = wanted.and_then(|(fixed, live)| relabel(pod, live, &fixed.update)) {
        let message = "its labels are being changed";
        return Err(Turn::act_and_wait(action, Code::Relabelling, message));
    }
    until_recovered(view, manager)
}

/// Reason why a node that serves is not back yet, if its pod is not ready: its operator takes two such pods for a
/// failure of the cluster, and the next node would be the second.
fn why_pod_is_not_ready(context: &Context<'_>, pod: &Pod) -> Option<String> {
    let operator = recovering_operator(context, pod).filter(|_| !pod.ready)?;
    Some(format!(
        "its engine serves, and its pod is not ready: {} makes the StatefulSet again when two are not",
        operator.name()
    ))
}

/// True if a member whose pod has changed is proven back: then there is no rollback any more.
fn is_updated(context: &Context<'_>, member: &Member, pod: &Pod, manager: &Manager) -> bool {
    member.update.is_some()
        && is_carried_out(member, pod)
        && has_joined(context, member) == Ok(true)
        && manager.is_ready()
        && why_others_are_not_ready(member, pod).is_none()
}

/// Waits for the labels of an updated member that is proven back too late: without them nobody knows which
/// template its pod has. They get one phase, from when the member was seen to be late; the engine's settings,
/// which are left as well, are debts.
fn until_labelled(view: &TurnView<'_, '_>, pod: &Pod) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    let Some(fixed) = member.update.as_ref().filter(|_| !is_labelled(member, pod)) else {
        return Err(Turn::finish(Ending::done()));
    };
    let now = context.snapshot.now;
    match fixed.late_since {
        None => {
            let late = MemberUpdate { late_since: Some(now), ..(**fixed).clone() };
            Err(Turn::change(Member { update: Some(Box::new(late)), ..member.clone() }))
        }
        Some(since) if now.since(since) >= context.policy.phase_timeout => {
            let reason = "it runs as its owner wants it; its labels could not be changed";
            // The labels of the other nodes could not be changed, either.
            let mut changes = Changes::default();
            changes.end_with(Outcome::Aborted, format!("{}: {reason}", member.node));
            let ending = Ending { outcome: Outcome::Done, reason: reason.to_owned() };
            Err(Turn::Finish(ending, Box::new(changes)))
        }
        Some(_) => Ok(()),
    }
}

/// True if a member was proven back in its changed pod before: its labels were changed after that.
pub(crate) fn was_proven(member: &Member, pod: &Pod) -> bool {
    let has_new_label = member.update.as_ref().is_some_and(|one| one.update.from != one.update.to);
    has_new_label && is_labelled(member, pod) && is_carried_out(member, pod)
}

/// Ends a member that was proven back in its changed pod: a rollback of the pod would make its labels wrong,
/// and nothing else is left to do. `since`: what has happened since then, for the reason.
pub(crate) fn done_until(since: &str) -> Turn {
    let reason = format!("it was back in its changed pod; {since}");
    Turn::finish(Ending { outcome: Outcome::Done, reason })
}

/// True if the pod has the label of the template that its update is for.
fn is_labelled(member: &Member, pod: &Pod) -> bool {
    let wanted = member.update.as_ref().zip(pod.live.as_ref());
    wanted.is_none_or(|(fixed, live)| live.revision == fixed.update.to)
}

/// Minimum time between two nudges of the kubelet, in milliseconds: at the first nudge it may have read an
/// old version of the Secret.
const NUDGE_AGAIN: u64 = 10_000;

/// Reason why a node could not be stopped, if the config of its sources was not mounted in it.
pub(crate) fn why_not_mounted(pod: &Pod, manager: &Manager) -> Option<String> {
    match expected_now(pod, manager) {
        Err(blocker) => Some(blocker.message),
        Ok(expected) => (expected != manager.mounted).then(|| not_mounted(pod)),
    }
}

/// The one message of [`Code::ConfigNotMounted`].
pub(crate) fn not_mounted(pod: &Pod) -> String {
    format!("the new config is not mounted in {} yet", pod.name)
}

/// Passes once the sources' config is the member's expected one and is mounted. `start`: a start
/// request with the old checksum may have been sent already; then its sequence is replaced as well.
pub(crate) fn until_mounted(
    view: &TurnView<'_, '_>,
    pod: &Pod,
    manager: &Manager,
    start: bool,
) -> Result<(), Turn> {
    let TurnView { context, member, .. } = *view;
    let expected = expected_now(pod, manager)?;
    if expected != member.expected {
        let mut moved = member.clone();
        moved.expected = expected;
        if start {
            moved.start_sequence += SEQUENCE_GAP;
        }
        return Err(Turn::change(moved));
    }
    if manager.mounted == expected {
        return Ok(());
    }
    let file = manager.lagging.as_ref().map_or(String::new(), |file| format!(" ({file})"));
    Err(nudge_and_wait(context, pod, expected.as_deref(), not_mounted(pod) + &file))
}

/// Makes the kubelet check the pod's volumes, by a change of an annotation: it checks them at every change of
/// the pod.
pub(crate) fn nudge_and_wait(
    context: &Context<'_>,
    pod: &Pod,
    expected: Option<&str>,
    message: String,
) -> Turn {
    let short = short(expected.unwrap_or_default());
    let nudged = pod.annotations.get(annotation::NUDGE).and_then(|value| {
        let (checksum, at) = value.split_once(' ')?;
        (checksum == short).then(|| Time::parse(at).ok())?
    });
    let now = context.snapshot.now;
    let mut changes = Changes::default();
    if nudged.is_none_or(|at| now.since(at) >= NUDGE_AGAIN) {
        changes.annotate(pod, [(annotation::NUDGE, Some(format!("{short} {now}")))]);
    }
    Turn::Act(Box::new(changes), Some(Blocker { code: Code::ConfigNotMounted, message }))
}
