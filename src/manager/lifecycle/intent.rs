//! The requested state of the engine, as it survives in the journal, and the fencing by sequences.

use serde::{Deserialize, Serialize};

use stayput_api::{
    Code, ConfigChoice, Desired, MAX_SEQUENCE, MAX_SEQUENCE_JUMP, Refusal, RequestKind,
    StartRequest, StopRequest,
};

/// The requested state of the engine, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Intent {
    /// Desired state of the engine.
    pub desired: Desired,
    /// The config that a start without a request uses.
    pub config: ConfigChoice,
    /// Checksum of the config of the last start.
    pub checksum: Option<String>,
    /// Reason why the engine is not started without a request.
    pub held: Option<Held>,
    /// The request that last changed [`Self::desired`], if a request did.
    pub asked: Option<Asked>,
    /// True if the last start was requested, and the engine has not been ready since: if it ends,
    /// it is held, also by the next container.
    pub unproven: bool,
    /// Number of times in a row that the engine has ended together with its manager since then.
    pub unseen_ends: u32,
    /// A start that the manager makes by itself; only while the engine is to be stopped.
    pub resume: Option<Resume>,
    /// The highest sequence and its request.
    pub fencing: Fencing,
}

/// Sender and time of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Asked {
    /// Caller that sent the request.
    pub by: String,
    /// Time of the request in milliseconds since the Unix epoch.
    pub at: u64,
}

/// A start without a request, unless a request is accepted before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resume {
    /// Time of the start in milliseconds since the Unix epoch.
    pub at: u64,
    /// Milliseconds between the acceptance of the stop and that time.
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
    /// Highest sequence; 0 before the first request.
    pub sequence: u64,
    /// The request that had the highest sequence.
    pub last: Option<Judged>,
    /// True if the journal was lost: any sequence may come next.
    pub unknown: bool,
}

/// A request that was accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Judged {
    /// The request, with its sequence filled in.
    pub request: Request,
    /// True if the request was accepted.
    pub accepted: bool,
    /// Caller that sent the request.
    pub by: String,
    /// Time of the request in milliseconds since the Unix epoch.
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
    /// Kind of the request.
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Stop(_) => RequestKind::Stop,
            Self::Start(_) => RequestKind::Start,
        }
    }

    /// The sequence that its sender gave the request.
    pub const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Stop(StopRequest { sequence, .. })
            | Self::Start(StartRequest { sequence, .. }) => *sequence,
        }
    }

    /// The pod that the sender meant.
    pub const fn pod(&self) -> Option<&String> {
        match self {
            Self::Stop(StopRequest { pod, .. }) | Self::Start(StartRequest { pod, .. }) => {
                pod.as_ref()
            }
        }
    }

    /// This request with the given sequence.
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
    /// Reason for programs.
    pub code: HeldCode,
    /// Reason for people.
    pub message: String,
}

/// Why the engine is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldCode {
    /// The engine ended before it was ready, after a requested start.
    StartFailed,
    /// The engine's command could not be executed.
    SpawnFailed,
    /// The config could not be staged.
    PrepareFailed,
    /// The engine ended by itself, and `--on-exit hold` is set.
    EndedByItself,
    /// The engine ended by itself too often.
    TooManyRestarts,
    /// The engine ended together with its manager too often before it was ready.
    EndedWithManager,
    /// The journal cannot be read, so it is not known whether the engine should run.
    JournalUnreadable,
    /// A newer manager has held the engine for a reason that this one does not know.
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

/// Judgement on the sequence of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Decide the request under this sequence.
    Fresh(u64),
    /// The request was accepted before: answer, do not act.
    Retry,
}

impl Fencing {
    /// The sequence after the highest one.
    pub(super) fn next(&self) -> u64 {
        self.sequence.saturating_add(1).min(MAX_SEQUENCE)
    }

    /// Takes the next sequence, unless its own is above all used ones.
    pub(super) fn comes_after(&mut self, used: &Self) {
        if self.sequence <= used.sequence {
            self.sequence = used.next();
            if let Some(last) = &mut self.last {
                last.request = last.request.clone().with_sequence(self.sequence);
            }
        }
    }

    /// Judges the sequence of a request.
    pub(super) fn judge(&self, request: &Request) -> Result<Verdict, Refusal> {
        let highest = self.sequence;
        let sequence = request.sequence().unwrap_or(highest.saturating_add(1));
        if sequence > MAX_SEQUENCE {
            return Err(Refusal::new(
                Code::SequenceJump,
                format!("sequence {sequence} is above {MAX_SEQUENCE}, the largest one"),
            ));
        }
        if self.unknown {
            // Any sequence may be the next one, as long as there are numbers left after it.
            return if sequence <= MAX_SEQUENCE - MAX_SEQUENCE_JUMP {
                Ok(Verdict::Fresh(sequence))
            } else {
                Err(Refusal::new(
                    Code::SequenceJump,
                    format!(
                        "sequence {sequence} is too close to the largest one; take a lower one"
                    ),
                ))
            };
        }
        if sequence > highest.saturating_add(MAX_SEQUENCE_JUMP) {
            return Err(Refusal::new(
                Code::SequenceJump,
                format!(
                    "sequence {sequence} is more than {MAX_SEQUENCE_JUMP} above {highest}, the \
                     highest so far; leave it out to take the next one"
                ),
            ));
        }
        if sequence > highest {
            return Ok(Verdict::Fresh(sequence));
        }
        if sequence < highest || self.last.is_none() {
            return Err(Refusal::new(
                Code::StaleSequence,
                format!(
                    "sequence {sequence} is not above {highest}, the highest so far; leave it out \
                     to take the next one"
                ),
            ));
        }
        match &self.last {
            Some(last) if is_repeated(&last.request, request) && last.accepted => {
                Ok(Verdict::Retry)
            }
            Some(last) if is_repeated(&last.request, request) => Ok(Verdict::Fresh(sequence)),
            Some(last) => Err(Refusal::new(
                Code::SequenceReused,
                format!(
                    "sequence {sequence} was used for another {} request; take a higher one",
                    last.request.kind().as_str()
                ),
            )),
            None => Ok(Verdict::Fresh(sequence)),
        }
    }
}

/// True if both requests are the same. A stop may be repeated with another drain: its sender sees
/// meanwhile whether clients still come.
fn is_repeated(last: &Request, request: &Request) -> bool {
    match (last, request) {
        (Request::Stop(last), Request::Stop(request)) => {
            *last == StopRequest { drain: last.drain, ..request.clone() }
        }
        (last, request) => last == request,
    }
}
