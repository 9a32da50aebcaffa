//! A member whose pod is not listed or was replaced by another pod, or whose engine somebody else has
//! started after the request. Data that is deleted with a replaced pod or container is protected here,
//! where the rules are not asked because the engine is down.

use std::collections::BTreeSet;

use crate::changes::LATER;
use crate::changes::{Changes, Check, refuse};
use crate::flow::answers::take_sequences_above;
use crate::flow::engine::clean_up;
use crate::flow::member::bring_back::owe_start_of_gone;
use crate::flow::member::update::frozen_update::{is_for_updates, planned_update};
use crate::flow::member::update::{phases, step_of};
use crate::flow::member::{gives_back, until_limit_lifted};
use crate::flow::observed::{is_over_time, lists_new_process};
use crate::flow::turn::{GiveBack, Turn, TurnView, wait};
use crate::ledger::LedgerChange;
use crate::rules::{Deletion, deletion};
use crate::{
    Blocker, Code, Context, Direction, Ending, Ledger, Manager, Member, Outcome, Pod, Restart,
    Sources, Strategy, UpdateStep,
};
use stayput_api::{Desired, ExitReason, State};

/// The pod of a member that waits for its turn; `Err` is the member's turn while its pod is not listed. The
/// pod that replaces it becomes the member's pod.
pub(crate) fn before_its_turn<'a>(context: &Context<'a>, member: &Member) -> Result<&'a Pod, Turn> {
    if let Some(pod) = context.index.pod(&member.pod_uid) {
        return until_listed_again(member).map(|()| pod);
    }
    if let Some(successor) = context.index.successor(member) {
        let mut new = member.clone();
        new.pod_uid.clone_from(&successor.uid);
        new.absent_since = None;
        return Err(Turn::change(new));
    }
    if is_gone_for_good(context, member)? {
        return Err(Turn::untouched("its pod is gone and no other took its place"));
    }
    let message = "the pod is gone; waiting for the one in its place".to_owned();
    let changes = Changes { requeue: Some(LATER), ..Changes::default() };
    Err(Turn::Act(Box::new(changes), Some(Blocker { code: Code::PodGone, message })))
}

/// True if the pod has been absent for a phase, from the first plan that misses it, which is written to the
/// ledger.
fn is_gone_for_good(context: &Context<'_>, member: &Member) -> Result<bool, Turn> {
    let now = context.snapshot.now;
    match member.absent_since {
        Some(since) => Ok(now.since(since) >= context.policy.phase_timeout),
        None => Err(Turn::change(Member { absent_since: Some(now), ..member.clone() })),
    }
}

/// Passes once the ledger no longer marks a pod as absent that is listed again.
pub(crate) fn until_listed_again(member: &Member) -> Result<(), Turn> {
    match member.absent_since {
        Some(_) => Err(Turn::change(Member { absent_since: None, ..member.clone() })),
        None => Ok(()),
    }
}

/// State of a member whose pod was replaced while it held a slot. The first that applies counts, in this order.
enum Shown<'t> {
    /// No other pod has taken its place.
    Gone,
    /// The new pod mounts other volume claims, as this message says.
    OtherClaims(String),
    /// The new node has joined, and its manager does not answer.
    Unreachable(Blocker),
    /// The new node has joined on an old config.
    OnOldConfig,
    Joined(&'t Pod),
    /// No Kubernetes node takes the new pod, as this message says.
    Unschedulable(String),
    Starting,
}

fn shown<'t>(view: &TurnView<'t, '_>) -> Shown<'t> {
    let TurnView { context, member, .. } = *view;
    let Some(successor) = context.index.successor(member) else { return Shown::Gone };
    if let Some(other) = other_claims(member, successor) {
        return Shown::OtherClaims(other);
    }
    if lists_new_process(context, member) && context.index.is_up(successor) {
        return match context.index.manager(&successor.uid) {
            Err(blocker) => Shown::Unreachable(blocker),
            Ok(manager) if runs_on_old_config(successor, manager) => Shown::OnOldConfig,
            Ok(_) => Shown::Joined(successor),
        };
    }
    match successor.live.as_ref().and_then(|live| live.unschedulable.as_ref()) {
        Some(why) => {
            // The scheduler writes sentences.
            let why = why.trim_end_matches('.');
            Shown::Unschedulable(format!("no Kubernetes node takes the new pod: {why}"))
        }
        None => Shown::Starting,
    }
}

/// The turn of a member whose pod was replaced while it held a slot: the new pod has a new process, on the
/// config that is mounted there.
pub(crate) fn in_its_turn(view: &TurnView<'_, '_>) -> Turn {
    let TurnView { context, member, .. } = *view;
    let is_late = is_over_time(context, member, phases(member));
    match shown(view) {
        Shown::Gone if is_late => Turn::Abort("the pod is gone and no other took its place".into()),
        Shown::Gone => match gives_back(view, None) {
            Some(why) => Turn::GiveBack(why),
            None => {
                let message = "the pod is gone; waiting for the one in its place";
                until_limit_lifted(view, wait(Code::PodGone, message))
            }
        },
        Shown::OtherClaims(other) => Turn::Abort(other),
        Shown::Unreachable(blocker) if is_late => {
            Turn::Abort(format!("its pod was replaced: {}", blocker.message))
        }
        Shown::Unreachable(blocker) => Turn::Wait(blocker),
        Shown::OnOldConfig => {
            // The next turn begins as any other: with the rules, and with all that protects the node's
            // shards.
            let reason = "its pod was replaced by one that runs on an old config".to_owned();
            Turn::GiveBack(GiveBack { reason, by_rule: false })
        }
        Shown::Joined(successor) => match claims_known(member, successor) {
            Err(Unread::Yet(why)) if !is_late => {
                wait(Code::Joining, format!("it has joined, and {why}"))
            }
            Err(Unread::Yet(_) | Unread::Forbidden(_)) | Ok(()) => match clean_up(view) {
                Ok(()) => Turn::finish(ending_of_replaced(member, successor)),
                Err(turn) => turn,
            },
        },
        Shown::Unschedulable(message) if is_late => Turn::Abort(message),
        Shown::Unschedulable(message) => until_limit_lifted(view, wait(Code::WouldNotFit, message)),
        Shown::Starting if is_late => {
            Turn::Abort("the pod was replaced and the new one has not joined".into())
        }
        Shown::Starting => {
            let message = "the pod was replaced; waiting for the new one to join";
            until_limit_lifted(view, wait(Code::Joining, message))
        }
    }
}

/// True if the kubelet mounted an old config, so that the new pod still has to be restarted.
fn runs_on_old_config(successor: &Pod, manager: &Manager) -> bool {
    match (&successor.sources, &manager.run) {
        (Sources::Checksum(wanted), Some(run)) => {
            run.checksum.as_ref() != Some(wanted) && !successor.ignores_change
        }
        (Sources::Unknown(_) | Sources::Absent(_), _) | (Sources::Checksum(_), None) => false,
    }
}

/// The ending of a member in a new pod. If we had the pod replaced, and its owner made the new one from another
/// template than the one wanted, replacing it once more does not help. The content that it reads may have
/// changed again since.
fn ending_of_replaced(member: &Member, successor: &Pod) -> Ending {
    if step_of(member) != UpdateStep::Replace {
        let reason = "the pod was replaced during the restart; the new one runs".to_owned();
        return Ending { outcome: Outcome::Done, reason };
    }
    let wanted = member.update.as_ref().map(|fixed| &fixed.update.to);
    let lacks = successor.update.as_ref().ok().and_then(Option::as_ref);
    match lacks.filter(|lacks| Some(&lacks.to) == wanted && lacks.from != lacks.to) {
        None => match claims_known(member, successor) {
            Ok(()) => Ending::done(),
            Err(Unread::Yet(reason) | Unread::Forbidden(reason)) => {
                Ending { outcome: Outcome::Done, reason }
            }
        },
        Some(lacks) => Ending {
            outcome: Outcome::Aborted,
            reason: format!("its owner made the new pod from {}, not {}", lacks.from, lacks.to),
        },
    }
}

/// Reason why the pod that replaced ours is not the wanted one, if it mounts other volume claims. A claim
/// that was deleted and recreated has the same name, and no data.
fn other_claims(member: &Member, successor: &Pod) -> Option<String> {
    let fixed = member.update.as_ref().filter(|one| one.update.step == UpdateStep::Replace)?;
    let live = successor.live.as_ref()?;
    if live.claims != fixed.claims {
        let list = |claims: &BTreeSet<String>| {
            if claims.is_empty() {
                "none".to_owned()
            } else {
                claims.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            }
        };
        return Some(format!(
            "the new pod mounts other volume claims: {} instead of {}",
            list(&live.claims),
            list(&fixed.claims)
        ));
    }
    let now = successor.claim_uids.as_ref().ok()?;
    let mut both =
        fixed.claim_uids.iter().filter_map(|(claim, old)| Some((claim, old, now.get(claim)?)));
    let (claim, old, new) = both.find(|(_, old, new)| old != new)?;
    Some(format!(
        "the new pod {} mounts another volume claim than before: {claim} was deleted and made again, \
         its uid was {old} and is {new}",
        successor.name
    ))
}

/// Reason why volume claims were compared by their names alone.
enum Unread {
    /// The reconciler may be able to read the claims later.
    Yet(String),
    Forbidden(String),
}

/// Passes if each volume claim of the pod that replaced ours could be compared by its uid.
fn claims_known(member: &Member, successor: &Pod) -> Result<(), Unread> {
    let Some(fixed) = &member.update else { return Ok(()) };
    if fixed.claim_uids.is_empty() {
        return Ok(());
    }
    let compared = "its volume claims were compared by their names alone";
    match &successor.claim_uids {
        Err(unknown) => Err(Unread::Yet(format!("{compared}: {}", unknown.message))),
        Ok(now) if fixed.claim_uids.keys().all(|claim| now.contains_key(claim)) => Ok(()),
        Ok(_) => Err(Unread::Forbidden(format!("{compared}: the reconciler may not read them"))),
    }
}

/// Makes the pod that replaced a member's pod the member's pod, with new sequences. While no such pod is
/// listed, the member waits. A restart that only goes forward does not wait forever for the manager of the
/// new pod.
pub(crate) fn taken_over(view: &TurnView<'_, '_>) -> Turn {
    let TurnView { context, ledger, member, .. } = *view;
    let gives_up = || is_over_time(context, member, 2) && may_turn_back(ledger);
    let Some(successor) = context.index.successor(member) else {
        let reason = "its pod is gone and no other took its place";
        return match is_gone_for_good(context, member) {
            Err(turn) => turn,
            Ok(false) => wait(Code::PodGone, "the pod is gone; waiting for the one in its place"),
            Ok(true) if may_turn_back(ledger) => Turn::Abort(reason.into()),
            // The list may lack a pod whose engine still runs: its start stays a debt.
            Ok(true) => owe_start_of_gone(context, member, reason),
        };
    };
    let manager = match context.index.manager(&successor.uid) {
        Ok(manager) => manager,
        Err(blocker) if gives_up() => {
            return Turn::Abort(format!("its pod was replaced: {}", blocker.message));
        }
        Err(blocker) if may_turn_back(ledger) => return Turn::Wait(blocker),
        // The manager of the new pod starts its engine.
        Err(blocker) => {
            return match is_gone_for_good(context, member) {
                Err(turn) => turn,
                Ok(false) => Turn::Wait(blocker),
                Ok(true) => Turn::finish(Ending {
                    outcome: Outcome::Aborted,
                    reason: format!("its pod was replaced: {}", blocker.message),
                }),
            };
        }
    };
    let (old, new) = (member.pod_uid.clone(), successor.uid.clone());
    let changes = Changes::of_ledger(LedgerChange::ReplacePod { old, new });
    let mut new = member.clone();
    new.pod_uid.clone_from(&successor.uid);
    new.absent_since = None;
    new.silent_since = None;
    // The update is frozen again for the new pod before its stop.
    new.update = None;
    take_sequences_above(&mut new, manager.sequence);
    Turn::Change(Box::new(new), Box::new(changes))
}

/// True if every node of the restart can still be turned back.
pub(crate) fn may_turn_back(ledger: &Ledger) -> bool {
    ledger.restart.as_ref().is_some_and(|one| one.direction == Direction::Open)
}

/// Tolerated clock skew between two machines, in milliseconds: times are known to the second.
const CLOCKS: u64 = 2_000;

/// The ending of a member that waits for its turn and needs none: its engine was started after the request,
/// is in the cluster, and runs on the config that it would be started on.
pub(crate) fn needs_no_turn(context: &Context<'_>, restart: &Restart, pod: &Pod) -> Option<Ending> {
    let manager = context.index.manager(&pod.uid).ok()?;
    let is_newer = manager.run_began().is_some_and(|at| at > restart.started.plus(CLOCKS));
    let serves = manager.is_ready()
        && manager.desired == Desired::Running
        && context.index.engine().is_ok()
        && context.index.is_up(pod);
    let is_undisturbed = !pod.terminating && pod.outdated.is_none();
    let is_on_expected = runs_on_expected(pod, manager);
    let is_as_wanted = planned_update(context.policy, restart.request.strategy, pod).is_none()
        && (pod.update.is_ok() || !is_for_updates(restart));
    (is_newer && serves && is_undisturbed && is_on_expected && is_as_wanted).then(|| Ending {
        outcome: Outcome::Done,
        reason: "its engine was started after the request".to_owned(),
    })
}

/// True if the engine runs on the config that it would be started on now.
fn runs_on_expected(pod: &Pod, manager: &Manager) -> bool {
    let runs_on = manager.runs_on();
    match &pod.sources {
        Sources::Checksum(wanted) => runs_on == Some(wanted) || pod.ignores_change,
        Sources::Unknown(_) => runs_on == manager.mounted.as_ref(),
        Sources::Absent(_) => false,
    }
}

/// Passes unless a rolling restart would interrupt the start of an engine: somebody started it less than a
/// phase ago, and it is not ready yet and has not failed.
pub(crate) fn until_started(
    context: &Context<'_>,
    restart: &Restart,
    pod: &Pod,
    manager: &Manager,
) -> Check {
    let ended = manager.last_exit.as_ref().map(|exit| exit.reason);
    let has_failed =
        pod.crash_looping || matches!(ended, Some(ExitReason::Exited | ExitReason::Oom));
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match manager.run_began() {
        Some(began)
            if restart.request.strategy == Strategy::Rolling
                && manager.state == State::Starting
                && !has_failed
                && now.since(began) < phase =>
        {
            let message =
                format!("{} was started just now: waits until it is ready or has failed", pod.node);
            refuse(Code::NotReady, message)
        }
        Some(_) | None => Ok(()),
    }
}

/// Passes, before the stop, unless the pod or its container would take the only copy of something with it.
pub(crate) fn may_be_deleted(view: &TurnView<'_, '_>, pod: &Pod) -> Check {
    match deletion_in(view, pod) {
        None => Ok(()),
        Some(deletion) => check(view, pod, deletion),
    }
}

/// Passes, after the stop, if [`may_be_deleted`] does or only a container is deleted: the other container may
/// be there already, and then has to be started.
pub(crate) fn may_be_replaced(view: &TurnView<'_, '_>, pod: &Pod) -> Check {
    match deletion_in(view, pod) {
        None | Some(Deletion::Container) => Ok(()),
        Some(deletion @ (Deletion::Pod | Deletion::PodOfUnknown | Deletion::Elsewhere)) => {
            check(view, pod, deletion)
        }
    }
}

fn deletion_in(view: &TurnView<'_, '_>, pod: &Pod) -> Option<Deletion> {
    let TurnView { context, restart, member, .. } = *view;
    let fixed = member.update.as_ref().and_then(|fixed| Deletion::of(&fixed.update));
    deletion(context.policy, restart.request.strategy, fixed, pod)
}

fn check(view: &TurnView<'_, '_>, pod: &Pod, deletion: Deletion) -> Check {
    let TurnView { context, ledger, .. } = *view;
    let evaluation = context.stop_evaluation(ledger).map_err(|blocker| Blocker {
        message: format!(
            "{}, and it is unknown whether it holds the only copy of data: {}",
            deletion.describe(&pod.node),
            blocker.message
        ),
        ..blocker
    });
    evaluation?.check_deletion(pod)
}
