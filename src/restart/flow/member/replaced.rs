//! A member whose pod is not listed, or was replaced by another pod.

use std::collections::BTreeSet;

use super::bring_back::owe_start_of_gone;
use super::unreachable_manager;
use super::update::{phases, step_of};
use crate::changes::Changes;
use crate::context::Context;
use crate::draft::LATER;
use crate::flow::answers::take_sequences_above;
use crate::flow::engine::clean_up;
use crate::flow::observed::{is_over_time, lists_new_process};
use crate::flow::turn::{GiveBack, Turn, wait};
use crate::ledger::LedgerChange;
use crate::{
    Blocker, Code, Direction, Ending, Ledger, Manager, Member, Outcome, Pod, Restart, Sources,
    UpdateStep,
};

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

/// The turn of a member whose pod was replaced while it held a slot: the new pod has a new process, on the
/// config that is mounted there.
pub(super) fn in_its_turn(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Turn {
    let phases = phases(member);
    let Some(successor) = context.index.successor(member) else {
        if is_over_time(context, member, phases) {
            return Turn::Abort("the pod is gone and no other took its place".into());
        }
        if let Some(why) = unreachable_manager::gives_back(context, ledger, restart, member, None) {
            return Turn::GiveBack(why);
        }
        let gone = wait(Code::PodGone, "the pod is gone; waiting for the one in its place");
        return unreachable_manager::until_limit_lifted(context, ledger, member, gone);
    };
    if let Some(other) = other_claims(member, successor) {
        return Turn::Abort(other);
    }
    if lists_new_process(context, member) && context.index.is_up(successor) {
        let manager = match context.index.manager(&successor.uid) {
            Ok(manager) => manager,
            Err(blocker) if is_over_time(context, member, phases) => {
                return Turn::Abort(format!("its pod was replaced: {}", blocker.message));
            }
            Err(blocker) => return Turn::Wait(blocker),
        };
        if runs_on_old_config(successor, manager) {
            // The next turn begins as any other: with the rules, and with all that protects the node's
            // shards.
            let reason = "its pod was replaced by one that runs on an old config".to_owned();
            return Turn::GiveBack(GiveBack { reason, by_rule: false });
        }
        if let Err(Unread::Yet(why)) = claims_known(member, successor)
            && !is_over_time(context, member, phases)
        {
            return wait(Code::Joining, format!("it has joined, and {why}"));
        }
        return match clean_up(context, ledger, member) {
            Err(turn) => turn,
            Ok(()) if step_of(member) == UpdateStep::Replace => {
                Turn::finish(ending_of_replaced(member, successor))
            }
            Ok(()) => Turn::finish(Ending {
                outcome: Outcome::Done,
                reason: "the pod was replaced during the restart; the new one runs".into(),
            }),
        };
    }
    let unschedulable = successor.live.as_ref().and_then(|live| live.unschedulable.as_ref());
    let (code, message) = match unschedulable {
        Some(why) => {
            // The scheduler writes sentences.
            let why = why.trim_end_matches('.');
            (Code::WouldNotFit, format!("no Kubernetes node takes the new pod: {why}"))
        }
        None => (Code::Joining, "the pod was replaced; waiting for the new one to join".to_owned()),
    };
    match (is_over_time(context, member, phases), unschedulable) {
        (true, Some(_)) => Turn::Abort(message),
        (true, None) => Turn::Abort("the pod was replaced and the new one has not joined".into()),
        (false, _) => {
            unreachable_manager::until_limit_lifted(context, ledger, member, wait(code, message))
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

/// The ending of a member whose pod we had replaced. If the owner made the new pod from another template than
/// the one wanted, replacing it once more does not help. The content that it reads may have changed again
/// since.
fn ending_of_replaced(member: &Member, successor: &Pod) -> Ending {
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
pub(crate) fn taken_over(context: &Context<'_>, ledger: &Ledger, member: &Member) -> Turn {
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
