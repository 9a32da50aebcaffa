//! Shows the ledger on the pods: the phase of the restart, and how the last restart ended.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::member_phase::phase_of;
use crate::lookup::lookup;
use crate::marks::Marks;
use crate::{
    HistoryEntry, LastRestart, Ledger, Member, Outcome, Phase, Pod, Restart, Time, annotation,
};

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
pub(super) fn result_of(id: &str, member: &Member, now: Time) -> Option<LastRestart> {
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
