//! When a caller who waits for a stop or a start has waited enough. Pure: the status decides.

use stayput_api::Refusal;
use stayput_api::{Code, Desired, State, Status};

/// What a status means for somebody who waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What was asked for holds.
    Done,
    /// It will not come to hold.
    Failed(Refusal),
}

/// Whose time it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    /// The status is older than the request, so it says nothing about it yet.
    Before,
    /// The status is about the request.
    Ours,
    /// Another request took its place.
    Over(Verdict),
}

/// What to tell somebody whose stop was accepted under `sequence`; `None`: keep waiting.
pub(super) fn stop(sequence: u64, status: &Status) -> Option<Verdict> {
    match turn(sequence, Desired::Stopped, status) {
        Turn::Before => return None,
        Turn::Ours => {}
        Turn::Over(verdict) => return Some(verdict),
    }
    match status.state {
        State::Stopped if status.desired == Desired::Stopped && status.manager.durable => {
            Some(Verdict::Done)
        }
        State::Stuck => Some(failed(Code::Stuck, status, "a process of the engine survives KILL")),
        State::Stopped
        | State::Starting
        | State::Running
        | State::Stopping
        | State::Killing
        | State::Backoff
        | State::Failed => None,
    }
}

/// What to tell somebody whose start, of the config with `checksum` if one was named, was accepted
/// under `sequence`; `None`: keep waiting.
pub(super) fn start(sequence: u64, checksum: Option<&str>, status: &Status) -> Option<Verdict> {
    match turn(sequence, Desired::Running, status) {
        Turn::Before => return None,
        Turn::Ours => {}
        Turn::Over(verdict) => return Some(verdict),
    }
    match status.state {
        State::Running => {
            let running = status.run.as_ref().and_then(|run| run.checksum.as_deref());
            match checksum {
                Some(wanted) if running != Some(wanted) => {
                    Some(Verdict::Failed(Refusal::new(Code::WrongConfig, wrong(wanted, running))))
                }
                Some(_) | None => Some(Verdict::Done),
            }
        }
        State::Failed => {
            Some(failed(Code::StartFailed, status, "the engine ended before it was ready"))
        }
        State::Stuck => Some(failed(Code::Stuck, status, "a process of the engine survives KILL")),
        State::Stopped | State::Starting | State::Stopping | State::Killing | State::Backoff => {
            None
        }
    }
}

fn turn(sequence: u64, wanted: Desired, status: &Status) -> Turn {
    let Some(last) = &status.last_request else { return Turn::Before };
    if last.sequence < sequence {
        return Turn::Before;
    }
    // A later request that was refused changed nothing, unless an accepted one came before it.
    if last.sequence == sequence || (!last.accepted && status.desired == wanted) {
        return Turn::Ours;
    }
    Turn::Over(Verdict::Failed(Refusal::new(
        Code::Superseded,
        format!(
            "request {sequence} was accepted, and then request {} took its place: read the \
             status before asking again",
            last.sequence
        ),
    )))
}

fn failed(code: Code, status: &Status, otherwise: &str) -> Verdict {
    let detail = status.reason.as_ref().map_or_else(
        || format!("{otherwise}: see `last_exit` and the engine's log"),
        |why| why.message.clone(),
    );
    Verdict::Failed(Refusal::new(code, detail))
}

fn wrong(wanted: &str, running: Option<&str>) -> String {
    match running {
        Some(running) => {
            format!("the engine runs with {running}, not with {wanted}: stop it before starting it")
        }
        None => format!(
            "the engine runs, and whether with {wanted} is not certain: the config changed while \
             it was reading it"
        ),
    }
}

#[cfg(test)]
mod tests;
