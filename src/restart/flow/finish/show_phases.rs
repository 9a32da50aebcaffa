//! Writes to the pods what the ledger contains: the phase of the restart, and how the last restart
//! ended.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::shown::{phase_of, phase_on, shown, shown_of, shown_phase};
use crate::lookup::Lookup;
use crate::{
    HistoryEntry, LastRestart, Ledger, Member, Outcome, Phase, Pod, Restart, Time, annotation,
};

/// Sets the annotations of every pod as the ledger requires, once the ledger is written.
pub(in crate::flow) fn show_phases(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if context.has_changed(ledger) {
        return changes;
    }
    let members: Lookup<'_, &Member> =
        ledger.members().map(|member| (member.pod_uid.as_str(), member)).collect();
    for pod in context.index.pods() {
        match (&ledger.restart, members.get(pod.uid.as_str())) {
            (Some(restart), Some(member)) => {
                show(&mut changes, context.snapshot.now, restart, member, pod);
            }
            (Some(_) | None, _) => remove_old(&mut changes, ledger, pod),
        }
    }
    changes
}

fn show(changes: &mut Changes, now: Time, restart: &Restart, member: &Member, pod: &Pod) {
    let id = &restart.request.id;
    let manager = pod.manager.as_ref().ok();
    match phase_of(restart, member, manager, shown_of(id, pod)) {
        Some(phase) => {
            let phase = phase.as_str();
            if phase_on(pod) == Some(phase) && shown(pod) == Some((id, phase)) {
                return;
            }
            changes.annotate(
                pod,
                &[
                    (annotation::PHASE, Some(phase.to_owned())),
                    (annotation::SHOWN, Some(format!("{id} {phase}"))),
                ],
            );
        }
        None if pod.annotations.contains_key(annotation::SHOWN) => {
            let last = last_of(id, member, now.since(member.since) / 1000);
            remove(changes, pod, last);
        }
        None => {}
    }
}

/// Removes the annotations that an ended restart has left on a pod.
fn remove_old(changes: &mut Changes, ledger: &Ledger, pod: &Pod) {
    let Some(shown) = pod.annotations.get(annotation::SHOWN) else { return };
    let (id, phase) = shown.split_once(' ').unwrap_or((shown, ""));
    if !ledger.has_handled(id) {
        // The phase belongs to another SearchCluster that selects the same pod.
        return;
    }
    // A node that still waited when the restart ended was never restarted.
    let had_its_turn = !Phase::parse(phase).is_ok_and(Phase::is_scheduled);
    // A late patch may put an old phase back after the result of this pod was already written.
    let is_reported = pod.annotations.get(annotation::LAST_RESTART).is_some_and(|text| {
        serde_json::from_str::<LastRestart>(text).is_ok_and(|last| last.id == id)
    });
    let is_its = |entry: &&HistoryEntry| had_its_turn && !is_reported && entry.id == id;
    let last = ledger.history.iter().rev().find(is_its).map(|entry| LastRestart {
        id: entry.id.clone(),
        outcome: entry.outcome,
        reason: entry.reason.clone(),
        started: entry.started,
        seconds: entry.seconds,
    });
    remove(changes, pod, last);
}

fn remove(changes: &mut Changes, pod: &Pod, last: Option<LastRestart>) {
    let mut wanted = vec![(annotation::SHOWN, None)];
    // A phase that a person has written meanwhile is a new request.
    if phase_on(pod) == shown_phase(pod) {
        wanted.push((annotation::PHASE, None));
    }
    if let Some(last) = last.and_then(|last| serde_json::to_string(&last).ok()) {
        wanted.push((annotation::LAST_RESTART, Some(last)));
    }
    changes.annotate(pod, &wanted);
}

/// How a member's restart ended, for its pod; none if it never began.
fn last_of(id: &str, member: &Member, seconds: u64) -> Option<LastRestart> {
    if member.stop_sequence == 0 {
        return None;
    }
    let ending = member.ending.as_ref();
    Some(LastRestart {
        id: id.to_owned(),
        outcome: ending.map_or(Outcome::Done, |ending| ending.outcome),
        reason: ending.map_or(String::new(), |ending| ending.reason.clone()),
        started: member.since,
        seconds,
    })
}
