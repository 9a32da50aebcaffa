//! When the wait for a stop or a start is over. Pure: the status decides.

use stayput_api::Refusal;
use stayput_api::{Code, ConfigChoice, Desired, StartRequest, State, Status};

/// How the wait for a request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The request is carried out.
    Done,
    /// The request will not be carried out.
    Failed(Refusal),
}

/// How a status relates to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Relevance {
    /// The status is older than the request.
    Older,
    /// The status is about the request.
    Current,
    /// A later request was accepted.
    Superseded(Outcome),
}

/// How the stop that was accepted under `sequence` ended; `None`: keep waiting.
pub(crate) fn stop(sequence: u64, status: &Status) -> Option<Outcome> {
    match relevance(sequence, Desired::Stopped, status) {
        Relevance::Older => return None,
        Relevance::Current => {}
        Relevance::Superseded(outcome) => return Some(outcome),
    }
    if status.desired == Desired::Running {
        return Some(Outcome::Failed(Refusal::new(
            Code::Superseded,
            "`resumeAfter` has passed, and the engine was started again",
        )));
    }
    match status.state {
        State::Stopped if status.manager.durable => Some(Outcome::Done),
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

/// How the start that was accepted under `sequence` ended; `None`: keep waiting.
pub(crate) fn start(sequence: u64, request: &StartRequest, status: &Status) -> Option<Outcome> {
    match relevance(sequence, Desired::Running, status) {
        Relevance::Older => return None,
        Relevance::Current => {}
        Relevance::Superseded(outcome) => return Some(outcome),
    }
    match status.state {
        State::Running => {
            let running = status.run.as_ref().and_then(|run| run.checksum.as_deref());
            let config = status.run.as_ref().map(|run| run.config);
            match request.checksum.as_deref() {
                _ if request.config == ConfigChoice::LastGood && config != Some(request.config) => {
                    Some(Outcome::Failed(superseded(sequence, status)))
                }
                Some(wanted) if running != Some(wanted) => Some(Outcome::Failed(Refusal::new(
                    Code::WrongConfig,
                    wrong_config(wanted, running),
                ))),
                Some(_) | None => Some(Outcome::Done),
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

fn relevance(sequence: u64, wanted: Desired, status: &Status) -> Relevance {
    let Some(last) = &status.last_request else { return Relevance::Older };
    if last.sequence < sequence {
        return Relevance::Older;
    }
    // The engine is still to be what was asked for: the later request was refused, or somebody else
    // asked for the same. What this one asked for is what decides.
    if last.sequence == sequence || status.desired == wanted {
        return Relevance::Current;
    }
    Relevance::Superseded(Outcome::Failed(superseded(sequence, status)))
}

fn superseded(sequence: u64, status: &Status) -> Refusal {
    Refusal::new(
        Code::Superseded,
        format!(
            "request {sequence} was accepted, and then request {} took its place: read the \
             status before asking again",
            status.sequence
        ),
    )
}

fn failed(code: Code, status: &Status, otherwise: &str) -> Outcome {
    let message = status.reason.as_ref().map_or_else(
        || format!("{otherwise}: see `last_exit` and the engine's log"),
        |why| why.message.clone(),
    );
    Outcome::Failed(Refusal::new(code, message))
}

fn wrong_config(wanted: &str, running: Option<&str>) -> String {
    match running {
        Some(running) => {
            format!("the engine runs with {running}, not with {wanted}: stop it before starting it")
        }
        None => format!(
            "the engine runs, perhaps not with {wanted}: the config changed while \
             the engine read it"
        ),
    }
}

#[cfg(test)]
mod tests;
