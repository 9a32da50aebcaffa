//! Reads a manager's status for answers to our requests and for requests of other clients.

use super::turn::Turn;
use crate::{Ending, Manager, Member, Outcome};
use stayput_api::{Desired, RequestKind, State};

/// Distance between two of our sequences. The one before each of ours stays free: a client that sends no
/// sequence gets the next one, so its request has a sequence that we never use.
pub(crate) const SEQUENCE_GAP: u64 = 2;

/// True if another client sent the manager a request since the member took its slot: with a higher sequence,
/// with one from the gaps between ours ([`SEQUENCE_GAP`]), or the opposite request with one of our sequences.
pub(crate) fn is_overtaken(manager: &Manager, member: &Member) -> bool {
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

/// Gives the stop and the start of a member the next sequences above `sequence`.
pub(crate) fn take_sequences_above(member: &mut Member, sequence: u64) {
    member.stop_sequence = sequence + SEQUENCE_GAP;
    member.start_sequence = member.stop_sequence + SEQUENCE_GAP;
}

/// A start sequence above the given one and the member's own, which [`is_overtaken`] recognizes as ours.
pub(crate) fn start_above(member: &Member, sequence: u64) -> u64 {
    let above = sequence.max(member.start_sequence) + SEQUENCE_GAP;
    above + (above - member.stop_sequence) % 2
}

/// True if the manager refused the last request that it decided on. Such a request changed nothing.
pub(crate) fn is_refused(manager: &Manager) -> bool {
    let last = manager.last_request.as_ref();
    last.is_some_and(|last| last.sequence == manager.sequence && !last.accepted)
}

/// True if the last request that the manager decided on has our sequence, but is the opposite of the request
/// that we sent.
pub(crate) fn is_opposite(manager: &Manager, sequence: u64, ours: RequestKind) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && last.kind != ours)
}

/// True if the last request that the manager decided on has this sequence and was refused.
pub(crate) fn was_refused(manager: &Manager, sequence: u64) -> bool {
    manager.last_request.as_ref().is_some_and(|last| last.sequence == sequence && !last.accepted)
}

/// True if the manager restarted the engine by itself after our stop, because no start arrived.
pub(crate) fn has_resumed(manager: &Manager, member: &Member) -> bool {
    manager.sequence == member.stop_sequence
        && manager.desired == Desired::Running
        && !was_refused(manager, member.stop_sequence)
}

/// True if the manager restarted the engine by itself on the config of our start. The start is then accepted
/// without another effect.
pub(crate) fn runs_as_expected(manager: &Manager, member: &Member) -> bool {
    has_resumed(manager, member) && is_on_expected(manager, member)
}

/// True if the manager restarted the engine by itself on another config than that of our start: one that was
/// mounted by then, or the last one that it was told to run. The manager then refuses our start.
pub(crate) fn runs_on_another(manager: &Manager, member: &Member) -> bool {
    let is_alive = matches!(manager.state, State::Starting | State::Running);
    has_resumed(manager, member) && is_alive && !is_on_expected(manager, member)
}

/// True if the engine runs, or is starting, on the config that the member is to be started on.
pub(crate) fn is_on_expected(manager: &Manager, member: &Member) -> bool {
    let run = manager.run.as_ref();
    matches!(manager.state, State::Starting | State::Running)
        && run.is_some_and(|run| member.expected.is_none() || run.checksum == member.expected)
}

/// The turn of a member whose manager got a request of another client first. If that client wants the engine
/// to run, and our stop may still arrive, we send a start with a higher sequence, so that the manager refuses
/// the stop.
pub(crate) fn overtaken(manager: &Manager, member: &Member) -> Turn {
    if manager.sequence < member.stop_sequence && manager.desired == Desired::Running {
        let by = manager.last_client();
        return Turn::Abort(format!("{by} sent its manager another request during the restart"));
    }
    interfered(manager, member)
}

/// Ends the part of a member whose manager got a request of another client. That request stays in force.
pub(crate) fn interfered(manager: &Manager, member: &Member) -> Turn {
    let by = manager.last_client();
    Turn::finish(Ending {
        outcome: Outcome::Interfered,
        reason: format!(
            "{by} sent the manager of {} request {} during the restart; it wants the engine to be {}",
            member.node,
            manager.sequence,
            manager.desired.as_str()
        ),
    })
}

/// Reason why an accepted start has failed, if it has.
pub(crate) fn start_failure(manager: &Manager, member: &Member) -> Option<String> {
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
                    run.checksum.as_deref().unwrap_or("an unknown config"),
                    member.expected.as_deref().unwrap_or_default()
                )
            })
        }
        // Between the answer and the spawn, or stopped by another client.
        State::Stopped | State::Stopping | State::Killing | State::Stuck => None,
    }
}

/// True if the engine is being stopped: it ends without a further request.
pub(crate) const fn is_ending(state: State) -> bool {
    matches!(state, State::Stopping | State::Killing)
}

/// The engine's state as its manager reports it, for messages.
pub(crate) fn describe_state(manager: &Manager) -> String {
    let state = format!("its engine is {}", manager.state.as_str());
    manager.reason.as_ref().map_or(state.clone(), |why| format!("{state}: {why}"))
}
