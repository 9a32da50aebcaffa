//! What a manager's status shows about our requests to it and about requests of other clients.

use super::turn::Turn;
use crate::{Ending, Manager, Member, Outcome};
use stayput_api::{Desired, RequestKind, State};

/// The distance between our sequences. The one before each of them stays free: a client that sends
/// no sequence gets the next one, so its request has a sequence that we never use.
pub(super) const SEQUENCE_GAP: u64 = 2;

/// Whether another client sent the manager a request since the member took its slot: with a higher
/// sequence, with one from the gaps between ours ([`SEQUENCE_GAP`]), or the opposite request with
/// one of our sequences.
pub(super) fn is_overtaken(manager: &Manager, member: &Member) -> bool {
    if is_refused(manager) {
        return false;
    }
    let between =
        manager.sequence > member.stop_sequence && manager.sequence < member.start_sequence;
    manager.sequence > member.start_sequence
        || manager.sequence + 1 == member.stop_sequence
        || (between && (manager.sequence - member.stop_sequence) % 2 == 1)
        || is_opposite(manager, member.stop_sequence, RequestKind::Stop)
        || is_opposite(manager, member.start_sequence, RequestKind::Start)
}

/// Gives the stop and the start of a member the next sequences above this one.
pub(super) fn take_sequences_above(member: &mut Member, sequence: u64) {
    member.stop_sequence = sequence + SEQUENCE_GAP;
    member.start_sequence = member.stop_sequence + SEQUENCE_GAP;
}

/// A start sequence above both, which [`is_overtaken`] recognizes as ours.
pub(super) fn start_above(member: &Member, sequence: u64) -> u64 {
    let above = sequence.max(member.start_sequence) + SEQUENCE_GAP;
    above + (above - member.stop_sequence) % 2
}

/// Whether the manager refused the last request that it decided on. Then that request changed
/// nothing.
pub(super) fn is_refused(manager: &Manager) -> bool {
    let last = manager.last_request.as_ref();
    last.is_some_and(|last| last.sequence == manager.sequence && !last.accepted)
}

/// Whether the last request that the manager decided on has our sequence, but is the opposite of
/// what we sent.
pub(super) fn is_opposite(manager: &Manager, sequence: u64, ours: RequestKind) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && last.kind != ours)
}

/// Whether the answer to `sequence` was a refusal.
pub(super) fn was_refused(manager: &Manager, sequence: u64) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && !last.accepted)
}

/// Whether the manager has started the engine by itself after our stop, because no start came.
pub(super) fn has_resumed(manager: &Manager, member: &Member) -> bool {
    manager.sequence == member.stop_sequence
        && manager.desired == Desired::Running
        && !was_refused(manager, member.stop_sequence)
}

/// Whether it has done so on the config that our start would have asked for. The start is then
/// accepted without another effect.
pub(super) fn runs_as_expected(manager: &Manager, member: &Member) -> bool {
    has_resumed(manager, member) && is_on_expected(manager, member)
}

/// Whether it has done so on another config, because that was mounted by then, or was the one that it was last
/// told to run. Our start cannot be accepted then.
pub(super) fn runs_on_another(manager: &Manager, member: &Member) -> bool {
    let is_alive = matches!(manager.state, State::Starting | State::Running);
    has_resumed(manager, member) && is_alive && !is_on_expected(manager, member)
}

/// Whether the engine runs, or is starting, on the config that the member is to be started on.
pub(super) fn is_on_expected(manager: &Manager, member: &Member) -> bool {
    let run = manager.run.as_ref();
    matches!(manager.state, State::Starting | State::Running)
        && run.is_some_and(|run| member.expected.is_none() || run.checksum == member.expected)
}

/// Another client sent the manager a request first. If that client wants the engine to run, and our
/// stop may still arrive, we send a start with a higher sequence, so that the manager refuses the
/// stop.
pub(super) fn overtaken(manager: &Manager, member: &Member) -> Turn {
    if manager.sequence < member.stop_sequence && manager.desired == Desired::Running {
        let by = manager.last_client();
        return Turn::Abort(format!("{by} gave its manager a request in the middle"));
    }
    interfered(manager, member)
}

/// Another client sent the manager a request. That request stays in force, and our part ends.
pub(super) fn interfered(manager: &Manager, member: &Member) -> Turn {
    let by = manager.last_client();
    Turn::finish(Ending {
        outcome: Outcome::Interfered,
        reason: format!(
            "{by} gave the manager of {} a request with sequence {} in the middle; the engine is \
             asked to be {}",
            member.node,
            manager.sequence,
            manager.desired.as_str()
        ),
    })
}

/// Why a start that was accepted has failed, if it has.
pub(super) fn start_failure(manager: &Manager, member: &Member) -> Option<String> {
    match manager.state {
        State::Failed | State::Backoff => {
            let exit = manager.last_exit.as_ref().and_then(|exit| exit.code);
            let code = exit.map_or(String::new(), |code| format!(" with code {code}"));
            let why = manager.reason.as_deref();
            Some(why.map_or_else(
                || format!("the engine ended{code} before it was back"),
                str::to_owned,
            ))
        }
        State::Starting | State::Running => {
            let run = manager.run.as_ref()?;
            (member.expected.is_some() && run.checksum != member.expected).then(|| {
                format!(
                    "its engine runs with {}, not with {}",
                    run.checksum.as_deref().unwrap_or("a config that is not certain"),
                    member.expected.as_deref().unwrap_or_default()
                )
            })
        }
        // Between the answer and the spawn, or stopped by another client.
        State::Stopped | State::Stopping | State::Killing | State::Stuck => None,
    }
}

/// Whether the engine will be stopped without a further request.
pub(super) const fn is_ending(state: State) -> bool {
    matches!(state, State::Stopping | State::Killing)
}

/// The engine's state as its manager reports it, for messages.
pub(super) fn describe_state(manager: &Manager) -> String {
    let state = format!("its engine is {}", manager.state.as_str());
    manager.reason.as_ref().map_or(state.clone(), |why| format!("{state}: {why}"))
}
