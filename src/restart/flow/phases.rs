//! Shows the ledger on the pods: the phase of the restart, and how the last restart ended. The apiserver
//! may refuse a patch for good, by an admission webhook for example: a restart or a deleted SearchCluster
//! ends all the same, after a wait.

use std::time::Duration;

use crate::changes::Changes;
use crate::flow::begin::last_turn;
use crate::index::{Marks, lookup};
use crate::rules::NameList;
use crate::{
    Context, HistoryEntry, LastRestart, Ledger, Manager, Member, MemberStep, Outcome, Phase, Pod,
    Restart, Strategy, Time, annotation, last_end,
};
use stayput_api::State;

/// Sets the annotations of every pod as the ledger requires, once the ledger is written.
pub(crate) fn show_phases(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if context.has_changed(ledger) {
        return changes;
    }
    let members = ledger.members().map(|member| (member.pod_uid.as_str(), member));
    let members = lookup(context.index.pods().len(), members);
    for (pod, marks) in context.index.marked_pods() {
        match (&ledger.restart, members.get(pod.uid.as_str())) {
            (Some(restart), Some(member)) => {
                show(&mut changes, context.snapshot.now, ledger, restart, member, (pod, marks));
            }
            (Some(_) | None, _) => remove_old(&mut changes, ledger, pod, marks),
        }
    }
    changes
}

fn show(
    changes: &mut Changes,
    now: Time,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
    (pod, marks): (&Pod, &Marks<'_>),
) {
    let id = &restart.request.id;
    let manager = pod.manager.as_ref().ok();
    match phase_of(restart, member, manager, marks.shown_of(id)) {
        Some(phase) => {
            let phase = phase.as_str();
            if marks.phase == Some(phase) && marks.shown_pair() == Some((id, phase)) {
                return;
            }
            let mut wanted = vec![
                (annotation::PHASE, Some(phase.to_owned())),
                (annotation::SHOWN, Some(format!("{id} {phase}"))),
            ];
            // A queued request may begin before the last node of the restart before it has shown this.
            wanted.extend(last_result(ledger, pod, marks).and_then(annotation_of));
            changes.annotate(pod, wanted);
        }
        None if marks.shown.is_some() => {
            remove(changes, pod, marks, result_of(id, member, now));
        }
        None => {}
    }
}

/// Removes the annotations that an ended restart has left on a pod.
fn remove_old(changes: &mut Changes, ledger: &Ledger, pod: &Pod, marks: &Marks<'_>) {
    let Some(shown) = marks.shown else { return };
    let (id, phase) = shown.split_once(' ').unwrap_or((shown, ""));
    if !ledger.has_handled(id) {
        // The phase belongs to another SearchCluster that selects the same pod.
        return;
    }
    if let Some(last) = last_result(ledger, pod, marks) {
        remove(changes, pod, marks, Some(last));
        return;
    }
    // A node that still waited when the restart ended was never restarted.
    let had_its_turn = !Phase::parse(phase).is_ok_and(Phase::is_scheduled);
    // A late patch may put an old phase back after the result of this pod was already written.
    let is_reported = pod.annotations.get(annotation::LAST_RESTART).is_some_and(|text| {
        serde_json::from_str::<LastRestart>(text).is_ok_and(|last| last.id == id)
    });
    // In a restart that was not done, some nodes may be: then nobody knows if this one is.
    let is_certain = |entry: &HistoryEntry| entry.outcome == Outcome::Done || entry.nodes == 0;
    let is_its =
        |entry: &&HistoryEntry| had_its_turn && !is_reported && entry.id == id && is_certain(entry);
    let last = ledger.history.iter().rev().find(is_its).map(|entry| LastRestart {
        id: entry.id.clone(),
        outcome: entry.outcome,
        reason: entry.reason.clone(),
        started: entry.started,
        seconds: entry.seconds,
    });
    remove(changes, pod, marks, last);
}

fn remove(changes: &mut Changes, pod: &Pod, marks: &Marks<'_>, last: Option<LastRestart>) {
    let mut wanted = vec![(annotation::SHOWN, None)];
    // A phase that a person has written meanwhile is a new request.
    if marks.phase == marks.shown_phase() {
        wanted.push((annotation::PHASE, None));
    }
    wanted.extend(last.and_then(annotation_of));
    changes.annotate(pod, wanted);
}

fn annotation_of(last: LastRestart) -> Option<(&'static str, Option<String>)> {
    Some((annotation::LAST_RESTART, Some(serde_json::to_string(&last).ok()?)))
}

/// The result of the node that ended together with its restart, if this pod does not show it yet.
fn last_result(ledger: &Ledger, pod: &Pod, marks: &Marks<'_>) -> Option<LastRestart> {
    let result = ledger.last_result.as_ref().filter(|result| result.pod_uid == pod.uid)?;
    let (of, _) = marks.shown_pair()?;
    (of == result.last.id).then(|| result.last.clone())
}

/// Result of a member's restart, for its pod, if the member had its turn or is done without one.
pub(crate) fn result_of(id: &str, member: &Member, now: Time) -> Option<LastRestart> {
    if !member.has_result() {
        return None;
    }
    let ending = member.ending.as_ref();
    Some(LastRestart {
        id: id.to_owned(),
        outcome: ending.map_or(Outcome::Done, |ending| ending.outcome),
        reason: ending.map_or(String::new(), |ending| ending.reason.clone()),
        started: member.since,
        seconds: now.since(member.since) / 1000,
    })
}

/// Decision on a restart, or on the end of a SearchCluster, whose pods still show a phase.
pub(crate) enum StalePhases {
    /// Wait for the patches.
    Waits,
    /// Wait for the patches, which this plan is the first to find late.
    Late,
    /// End without the patches, with this message.
    GivenUp(String),
}

/// Decides if the restart waits for the patches of these members' pods.
pub(crate) fn stale_phases(
    context: &Context<'_>,
    restart: &Restart,
    members: &[&Member],
) -> StalePhases {
    let last_turn = last_turn(restart);
    let since = restart.stuck_since.filter(|at| *at >= last_turn);
    let nodes = members.iter().map(|member| member.node.as_str());
    wait_for_patches(context, last_turn, since, nodes)
}

/// Decides if the end of a SearchCluster that is being deleted waits for the patches of these nodes' pods.
pub(crate) fn stale_phases_at_deletion<'a>(
    context: &Context<'_>,
    ledger: &Ledger,
    nodes: impl Iterator<Item = &'a str>,
) -> StalePhases {
    let last_end = last_end(ledger).unwrap_or_default();
    wait_for_patches(context, last_end, ledger.still_shown_since, nodes)
}

/// Waits for the patches as long as a phase may take, from the plan that first found them late: until then
/// nobody may have tried them. They are late a phase after `from`.
fn wait_for_patches<'a>(
    context: &Context<'_>,
    from: Time,
    since: Option<Time>,
    nodes: impl Iterator<Item = &'a str>,
) -> StalePhases {
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match since {
        Some(since) if now.since(since) >= phase => {
            let mut names = NameList::default();
            nodes.for_each(|node| names.add(node));
            let phase = humantime::format_duration(Duration::from_millis(phase));
            StalePhases::GivenUp(format!(
                "the pods of {names} still show an old phase or revision: they could not be patched for {phase}"
            ))
        }
        None if now.since(from) >= phase => StalePhases::Late,
        Some(_) | None => StalePhases::Waits,
    }
}

/// The phase that a member's pod shows; `None` once the member is finished. The phase follows from the ledger
/// and from the manager's report on our requests. `shown` is the phase on the pod now: a phase never goes
/// back to an earlier one.
pub(crate) fn phase_of(
    restart: &Restart,
    member: &Member,
    manager: Option<&Manager>,
    shown: Option<Phase>,
) -> Option<Phase> {
    let strategy = restart.request.strategy;
    let start = Phase::start(strategy);
    match member.step {
        MemberStep::Scheduled => Some(Phase::scheduled(strategy)),
        MemberStep::Finished => None,
        MemberStep::GivingBack => Some(Phase::stop(strategy)),
        MemberStep::Aborting => Some(start),
        MemberStep::Restarting if shown == Some(start) => Some(start),
        MemberStep::Restarting if strategy == Strategy::Coordinated => {
            Some(if restart.frozen.is_some() { start } else { Phase::StopCoordinated })
        }
        MemberStep::Restarting => {
            let is_stopped = manager.is_some_and(|manager| {
                manager.sequence >= member.start_sequence
                    || (manager.sequence >= member.stop_sequence && manager.state == State::Stopped)
            });
            Some(if is_stopped { start } else { Phase::Stop })
        }
    }
}
