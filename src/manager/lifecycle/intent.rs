//! What was requested, as it survives in the journal.

use serde::{Deserialize, Serialize};

use stayput_api::{ConfigChoice, Desired, RequestKind, StartRequest, StopRequest};

/// What was requested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Intent {
    /// What the engine should be.
    pub desired: Desired,
    /// The config that a start without a request uses.
    pub config: ConfigChoice,
    /// Checksum of the config of the last start.
    pub checksum: Option<String>,
    /// Why the engine is not started without a request.
    pub held: Option<Held>,
    /// Who last changed [`Self::desired`]; none if no request did.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// The last start was requested, and the engine has not been ready since: if it ends, it is
    /// held, also by the next container.
    #[serde(default)]
    pub unproven: bool,
    /// How often in a row the engine ended together with its manager since then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen_ends: u32,
    /// A start that the manager makes by itself; only while the engine is to be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    /// The highest sequence and its request.
    pub fencing: Fencing,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Who sent a request, and when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Asked {
    /// Who.
    pub by: String,
    /// In milliseconds since the Unix epoch.
    pub at: u64,
}

/// A start without a request, unless a request is accepted before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resume {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// How long after the stop was accepted that is.
    pub after: u64,
    /// Checksum of the config that the engine must be started with.
    pub checksum: Option<String>,
}

impl Default for Intent {
    fn default() -> Self {
        Self {
            desired: Desired::Running,
            config: ConfigChoice::Mounted,
            checksum: None,
            held: None,
            asked: None,
            unproven: false,
            unseen_ends: 0,
            resume: None,
            fencing: Fencing::default(),
        }
    }
}

/// The highest sequence that passed the check, and its request.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fencing {
    /// 0 before the first request.
    pub sequence: u64,
    /// The request that had it.
    pub last: Option<Judged>,
    /// The journal was lost: any sequence may come next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// A request that was accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Judged {
    /// The request, with its sequence filled in.
    pub request: Request,
    /// Whether it was accepted.
    pub accepted: bool,
    /// Who sent it.
    pub by: String,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// A request of either kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Request {
    /// `POST /es/stop`.
    Stop(StopRequest),
    /// `POST /es/start`.
    Start(StartRequest),
}

impl Request {
    /// Which of the two.
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Stop(_) => RequestKind::Stop,
            Self::Start(_) => RequestKind::Start,
        }
    }

    /// The sequence its sender gave it.
    pub const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Stop(StopRequest { sequence, .. })
            | Self::Start(StartRequest { sequence, .. }) => *sequence,
        }
    }

    /// The pod its sender meant.
    pub const fn pod(&self) -> Option<&String> {
        match self {
            Self::Stop(StopRequest { pod, .. }) | Self::Start(StartRequest { pod, .. }) => {
                pod.as_ref()
            }
        }
    }

    /// The same request under this sequence.
    #[must_use]
    pub fn with_sequence(mut self, number: u64) -> Self {
        match &mut self {
            Self::Stop(StopRequest { sequence, .. })
            | Self::Start(StartRequest { sequence, .. }) => *sequence = Some(number),
        }
        self
    }
}

/// Why the engine does not run and is not started without a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Held {
    /// For programs.
    pub code: HeldCode,
    /// For people.
    pub message: String,
}

/// Why the engine is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldCode {
    /// It ended before it was ready, after a requested start.
    StartFailed,
    /// Its command could not be executed.
    SpawnFailed,
    /// Its config could not be staged.
    PrepareFailed,
    /// It ended by itself, and `--on-exit hold` is set.
    EndedByItself,
    /// It ended by itself too often.
    TooManyRestarts,
    /// It ended together with its manager too often before it was ready.
    EndedWithManager,
    /// The journal cannot be read, so it is not known whether it should run.
    JournalUnreadable,
    /// A newer manager has held it for a reason that this one does not know.
    #[serde(other)]
    Unknown,
}

impl HeldCode {
    /// The name as it stands in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartFailed => "start_failed",
            Self::SpawnFailed => "spawn_failed",
            Self::PrepareFailed => "prepare_failed",
            Self::EndedByItself => "ended_by_itself",
            Self::TooManyRestarts => "too_many_restarts",
            Self::EndedWithManager => "ended_with_manager",
            Self::JournalUnreadable => "journal_unreadable",
            Self::Unknown => "unknown",
        }
    }
}
