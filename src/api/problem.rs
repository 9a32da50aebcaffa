//! Errors as RFC 9457 problem documents with a stable code.

use serde::{Deserialize, Serialize};

use super::Status;

/// Why a request was refused or failed. The name in snake case is the `code` of the answer, the
/// label of the metric and the value in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body is not the JSON object this route takes.
    InvalidBody,
    /// A query parameter has a value that cannot be read.
    InvalidQuery,
    /// The body is larger than the manager accepts.
    BodyTooLarge,
    /// The client took too long to send its request.
    RequestTimeout,
    /// No credentials, or credentials that were not accepted; which check failed is not reported.
    Unauthenticated,
    /// The caller is known, but lacks the scope.
    Forbidden,
    /// No such route.
    NotFound,
    /// The route exists, the method does not.
    MethodNotAllowed,
    /// A lower sequence than the highest one accepted.
    StaleSequence,
    /// The highest accepted sequence again, with another request.
    SequenceReused,
    /// A sequence too far ahead: probably a typo, which would block all later requests.
    SequenceJump,
    /// The request names another pod than this one.
    WrongPod,
    /// The request names a pod, and this manager does not know which pod it is in.
    PodUnknown,
    /// The mounted config is not the one the request expects.
    ChecksumMismatch,
    /// The request expects a config, and the mounted one cannot be read as a whole; or the file with the
    /// engine's variables cannot be used.
    ConfigUnknown,
    /// The engine runs, with another config than the request expects.
    WrongConfig,
    /// There is no last good config to start with.
    NoLastGood,
    /// The config could not be copied to the staging directory.
    StageFailed,
    /// The engine's temporary directory could not be made or emptied.
    TempDirFailed,
    /// The engine is being stopped; it can be started when it is gone.
    Stopping,
    /// A process of the engine survives KILL.
    Stuck,
    /// The manager itself is ending.
    Terminating,
    /// The engine's command could not be executed.
    SpawnFailed,
    /// The engine was started and ended before it was ready.
    StartFailed,
    /// The request was accepted, and a later one replaced it while the caller waited.
    Superseded,
    /// The intent could not be written to the state directory, or what was written there before is not
    /// read yet, so it was not acted on.
    JournalUnavailable,
    /// The manager's supervisor did not answer.
    Unavailable,
    /// The limit of requests that wait for a change of the status is reached.
    TooManyWaiting,
    /// The manager is upgraded only while nothing is under way.
    NotAtRest,
    /// The other program cannot take over.
    UpgradeRefused,
}

impl Code {
    /// Every code, in the order of declaration.
    pub const ALL: [Self; 30] = [
        Self::InvalidBody,
        Self::InvalidQuery,
        Self::BodyTooLarge,
        Self::RequestTimeout,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::StaleSequence,
        Self::SequenceReused,
        Self::SequenceJump,
        Self::WrongPod,
        Self::PodUnknown,
        Self::ChecksumMismatch,
        Self::ConfigUnknown,
        Self::WrongConfig,
        Self::NoLastGood,
        Self::StageFailed,
        Self::TempDirFailed,
        Self::Stopping,
        Self::Stuck,
        Self::Terminating,
        Self::SpawnFailed,
        Self::StartFailed,
        Self::Superseded,
        Self::JournalUnavailable,
        Self::Unavailable,
        Self::TooManyWaiting,
        Self::NotAtRest,
        Self::UpgradeRefused,
    ];

    /// The HTTP status that goes with the code.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidBody | Self::InvalidQuery | Self::SequenceJump => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::StaleSequence
            | Self::SequenceReused
            | Self::WrongPod
            | Self::PodUnknown
            | Self::WrongConfig
            | Self::NoLastGood
            | Self::Stopping
            | Self::Stuck
            | Self::Superseded
            | Self::NotAtRest
            | Self::UpgradeRefused => 409,
            Self::ChecksumMismatch | Self::ConfigUnknown => 412,
            Self::BodyTooLarge => 413,
            Self::StageFailed
            | Self::TempDirFailed
            | Self::Terminating
            | Self::SpawnFailed
            | Self::StartFailed
            | Self::JournalUnavailable
            | Self::Unavailable
            | Self::TooManyWaiting => 503,
        }
    }

    /// The code as it stands in answers, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidBody => "invalid_body",
            Self::InvalidQuery => "invalid_query",
            Self::BodyTooLarge => "body_too_large",
            Self::RequestTimeout => "request_timeout",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::StaleSequence => "stale_sequence",
            Self::SequenceReused => "sequence_reused",
            Self::SequenceJump => "sequence_jump",
            Self::WrongPod => "wrong_pod",
            Self::PodUnknown => "pod_unknown",
            Self::ChecksumMismatch => "checksum_mismatch",
            Self::ConfigUnknown => "config_unknown",
            Self::WrongConfig => "wrong_config",
            Self::NoLastGood => "no_last_good",
            Self::StageFailed => "stage_failed",
            Self::TempDirFailed => "temp_dir_failed",
            Self::Stopping => "stopping",
            Self::Stuck => "stuck",
            Self::Terminating => "terminating",
            Self::SpawnFailed => "spawn_failed",
            Self::StartFailed => "start_failed",
            Self::Superseded => "superseded",
            Self::JournalUnavailable => "journal_unavailable",
            Self::Unavailable => "unavailable",
            Self::TooManyWaiting => "too_many_waiting",
            Self::NotAtRest => "not_at_rest",
            Self::UpgradeRefused => "upgrade_refused",
        }
    }

    /// True if the manager's status shows the outcome of a stop or start with this answer: its
    /// supervisor has judged it. A request that was refused before that leaves no trace there, nor
    /// does a sequence that is too high.
    pub const fn is_shown_in_status(self) -> bool {
        match self {
            Self::InvalidBody
            | Self::InvalidQuery
            | Self::BodyTooLarge
            | Self::RequestTimeout
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::SequenceJump
            | Self::Unavailable
            | Self::TooManyWaiting
            | Self::NotAtRest
            | Self::UpgradeRefused => false,
            Self::StaleSequence
            | Self::SequenceReused
            | Self::WrongPod
            | Self::PodUnknown
            | Self::ChecksumMismatch
            | Self::ConfigUnknown
            | Self::WrongConfig
            | Self::NoLastGood
            | Self::StageFailed
            | Self::TempDirFailed
            | Self::Stopping
            | Self::Stuck
            | Self::Terminating
            | Self::SpawnFailed
            | Self::StartFailed
            | Self::Superseded
            | Self::JournalUnavailable => true,
        }
    }

    /// A short summary of the kind of problem: the same text for every occurrence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::InvalidBody => "The request body cannot be used",
            Self::InvalidQuery => "A query parameter cannot be used",
            Self::BodyTooLarge => "The request body is too large",
            Self::RequestTimeout => "The request did not arrive in time",
            Self::Unauthenticated => "Credentials are needed",
            Self::Forbidden => "The credentials do not allow this",
            Self::NotFound => "There is nothing here",
            Self::MethodNotAllowed => "The method is not allowed here",
            Self::StaleSequence => "A later request was already accepted",
            Self::SequenceReused => "The sequence belongs to another request",
            Self::SequenceJump => "The sequence is too far ahead",
            Self::WrongPod => "The request is meant for another pod",
            Self::PodUnknown => "This manager does not know its pod",
            Self::ChecksumMismatch => "Another config is mounted",
            Self::ConfigUnknown => "The mounted config cannot be read",
            Self::WrongConfig => "The engine runs with another config",
            Self::NoLastGood => "There is no last good config",
            Self::StageFailed => "The config cannot be staged",
            Self::TempDirFailed => "The engine's temporary directory cannot be used",
            Self::Stopping => "The engine is being stopped",
            Self::Stuck => "A process of the engine cannot be ended",
            Self::Terminating => "The manager is ending",
            Self::SpawnFailed => "The engine cannot be executed",
            Self::StartFailed => "The engine ended before it was ready",
            Self::Superseded => "A later request took the place of this one",
            Self::JournalUnavailable => "The journal cannot be used",
            Self::Unavailable => "The supervisor does not answer",
            Self::TooManyWaiting => "Too many requests wait",
            Self::NotAtRest => "The manager is not at rest",
            Self::UpgradeRefused => "The other program cannot take over",
        }
    }
}

/// The body of every error answer: `application/problem+json` (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of problem, for people.
    pub title: String,
    /// The HTTP status, repeated for clients that keep only the body.
    pub status: u16,
    /// The kind of problem, for programs.
    pub code: Code,
    /// The fault of this request, and what to do.
    pub detail: String,
    /// The manager's status after the refusal; absent for callers who may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<Status>>,
}

impl Problem {
    /// A problem without the current status.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            title: code.title().to_owned(),
            status: code.http_status(),
            code,
            detail: detail.into(),
            current: None,
        }
    }
}
