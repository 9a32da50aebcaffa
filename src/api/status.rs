//! The answer of `GET /es/status`. Times are RFC 3339 in UTC.

use serde::{Deserialize, Serialize};

use super::{ConfigChoice, RequestKind};

/// Desired state of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// The engine should run.
    Running,
    /// The engine should stay stopped, also after a restart of the container.
    Stopped,
}

impl Desired {
    /// `running` or `stopped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// Present state of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No process of the engine exists, as requested.
    Stopped,
    /// The engine was spawned, and is not ready yet.
    Starting,
    /// The engine has been ready in this run.
    Running,
    /// The engine was asked to end; or it has ended, and some of its processes have not.
    Stopping,
    /// The remaining processes of the engine were sent KILL, or are about to be.
    Killing,
    /// The engine ended by itself and will be started again.
    Backoff,
    /// The engine ended by itself or could not be started, and waits for a request.
    Failed,
    /// A process of the engine survives KILL.
    Stuck,
}

impl State {
    /// Every state, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Stopped,
        Self::Starting,
        Self::Running,
        Self::Stopping,
        Self::Killing,
        Self::Backoff,
        Self::Failed,
        Self::Stuck,
    ];

    /// The name as it stands in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Killing => "killing",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Stuck => "stuck",
        }
    }
}

/// Names one version of the status: `<boot>:<generation>`. Opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// The whole status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The manager itself.
    pub manager: Manager,
    /// Changes with every change of the status.
    pub cursor: Cursor,
    /// The desired state of the engine.
    pub desired: Desired,
    /// The state of the engine.
    pub state: State,
    /// Last answer of the readiness probe; false before the first one, null without a probe.
    pub ready: Option<bool>,
    /// Reason why the last call of the readiness probe failed; null after one that succeeded.
    #[serde(default)]
    pub ready_error: Option<String>,
    /// Time since when `state` holds.
    pub since: String,
    /// Highest sequence of a request that passed the sequence check.
    pub sequence: u64,
    /// The present life of the engine, while any of its processes exists.
    pub run: Option<Run>,
    /// The archive of classes that the options of the present run's server JVM name, if they do.
    /// The manager looks for it when the engine is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
    /// Number of starts of the engine since the manager started.
    pub starts: u64,
    /// Exit of the last run.
    pub last_exit: Option<Exit>,
    /// The last request that passed the sequence check.
    pub last_request: Option<LastRequest>,
    /// The mounted config; null without `--config`.
    pub config: Option<Config>,
    /// SHA-256 in lower-case hexadecimal of the file with the engine's variables as it is now, of
    /// zero bytes for an absent one; absent without `--environment`, or while the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Reason why the engine is not simply running.
    pub reason: Option<Reason>,
    /// The start that the manager makes by itself; null if the engine waits for a request.
    #[serde(default)]
    pub resume: Option<Resume>,
}

/// A start that the manager makes by itself, unless a request with a higher sequence comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resume {
    /// Time of the start.
    pub at: String,
    /// Checksum of the config that the engine must be started with; null if any will do.
    pub checksum: Option<String>,
}

/// The manager's own part of the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Version of the binary.
    pub version: String,
    /// The version that this one has taken over from while the engine ran on; absent if the
    /// container was started with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded_from: Option<String>,
    /// Random, different at each start of the manager.
    pub boot_id: String,
    /// Pid in the manager's own namespace.
    pub pid: u32,
    /// Time when the manager started.
    pub since: String,
    /// True if `desired`, `sequence` and `last_request` would all survive a crash now.
    pub durable: bool,
    /// The pod, as far as the downward API provides it.
    pub pod: Pod,
    /// Lines of the manager's own log that were dropped because nothing read the log.
    #[serde(default)]
    pub log_lines_lost: u64,
    /// Errors of the manager itself at present, sorted by code.
    #[serde(default)]
    pub errors: Vec<ManagerError>,
}

/// Something that the manager cannot do at present, and tries again. The engine is not affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerError {
    /// Kind of error, for programs.
    pub code: String,
    /// The fault and what to do, for people.
    pub message: String,
    /// Time since when the error lasts.
    pub since: String,
}

/// Identity of the pod; null where the downward API does not provide it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// `metadata.namespace`.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: Option<String>,
    /// `metadata.uid`.
    pub uid: Option<String>,
}

/// One life of the engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Random; also in the engine's environment as `STAYPUT_RUN`.
    pub id: String,
    /// Pid of the leader.
    pub pid: u32,
    /// Time when the leader was spawned.
    pub started_at: String,
    /// Checksum of the config the engine was started with; null if not known for certain.
    pub checksum: Option<String>,
    /// Origin of that config.
    pub config: ConfigChoice,
    /// True if the mounted config changed while the engine read it.
    #[serde(default)]
    pub config_uncertain: bool,
    /// [`Status::environment`] of the variables that the engine was started with; absent where the
    /// manager gave it none of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

/// An archive of classes, which a JVM maps instead of loading them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Archive {
    /// Path of the file.
    pub path: String,
    /// True if the JVM has mapped the archive. A JVM that it does not fit ignores it, and starts slower.
    pub used: bool,
}

/// End of a run. Exactly one of `code` and `signal` is set, or neither if no manager saw the end:
/// then `took_ms` is 0, and `ran_ms` and `at` are those of the next manager's start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Exit {
    /// Id of the run.
    pub run: String,
    /// Exit code of the leader.
    pub code: Option<i32>,
    /// Signal that ended the leader.
    pub signal: Option<i32>,
    /// Who or what ended the run.
    pub reason: ExitReason,
    /// Milliseconds from the first step of the stop, or the leader's own end, until no process was left.
    pub took_ms: u64,
    /// Milliseconds from the spawn until no process was left.
    pub ran_ms: u64,
    /// Time when no process was left.
    pub at: String,
    /// Processes that outlived leader and server and had to be ended.
    #[serde(default)]
    pub stragglers: Vec<Process>,
    /// Orphans the manager adopted that are not the engine's; they were left alone.
    #[serde(default)]
    pub strangers: Vec<Process>,
    /// Number of further processes that the lists do not name: each has a hundred at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnamed: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Exit {
    /// The code a shell would show: the exit code, or 128 + signal; `None` if nobody saw the end.
    pub fn shell_code(&self) -> Option<i32> {
        self.code.or_else(|| self.signal.map(|signal| 128 + signal))
    }
}

/// Who or what ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// The engine ended after the manager's stop signal.
    Stopped,
    /// The engine ended by itself, or by a signal (other than KILL) that the manager did not send.
    Exited,
    /// The engine was ended by KILL, sent by the manager or by another process.
    Killed,
    /// The kernel killed the engine because memory ran out.
    Oom,
    /// The engine ended together with its manager, so nobody saw how: the container was killed as a whole.
    EndedWithManager,
    /// A newer version of the manager has written a reason that this one does not know.
    #[serde(other)]
    Unknown,
}

impl ExitReason {
    /// The name as it stands in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Oom => "oom",
            Self::EndedWithManager => "ended_with_manager",
            Self::Unknown => "unknown",
        }
    }
}

/// A process, for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Pid in the manager's namespace.
    pub pid: u32,
    /// Command line of the process, shortened.
    pub command: String,
}

/// The last request, accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRequest {
    /// Sequence of the request.
    pub sequence: u64,
    /// Stop or start.
    pub kind: RequestKind,
    /// True if the request was accepted.
    pub accepted: bool,
    /// Caller that sent the request.
    pub by: String,
    /// Time when the request was accepted or refused.
    pub at: String,
}

/// The mounted config.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Checksum of all files that are not live; null if they cannot be read as one generation.
    pub checksum: Option<String>,
    /// True if the engine runs on another config than the mounted one; null if that is not known.
    pub drift: Option<bool>,
    /// Every file, sorted by path.
    pub files: Vec<ConfigFile>,
    /// The files that the checksum of the engine's config covers, sorted by path, while that may be
    /// another one than the mounted config; null otherwise, or where they are not known.
    #[serde(default)]
    pub run_files: Option<Vec<ConfigFile>>,
    /// Checksum of the last generation whose engine was ready and then up for a minute.
    pub last_good: Option<String>,
    /// Problems with the mounts and what to do, one message each.
    pub errors: Vec<String>,
    /// Time when the mounts were last read.
    pub observed_at: Option<String>,
}

/// One file of the config.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConfigFile {
    /// Path below the config directory, `NAME/…` with named directories.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// True if the engine reloads the file by itself, so that it is not part of the checksum.
    pub live: bool,
    /// SHA-256 of the content without `cluster.initial_master_nodes`; absent where that is not in
    /// it, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formed_sha256: Option<String>,
}

/// Reason why the engine waits or is held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reason {
    /// Kind of reason, for programs.
    pub code: String,
    /// The fault and what to do, for people.
    pub message: String,
}
