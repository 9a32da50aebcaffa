//! The answer of `GET /es/status`. Times are RFC 3339 in UTC.

use serde::{Deserialize, Serialize};

use super::{ConfigChoice, RequestKind};

/// What was requested for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// It should run.
    Running,
    /// It should stay stopped, also after a restart of the container.
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

/// What the engine does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No process of the engine exists, as was asked.
    Stopped,
    /// Spawned, not yet ready.
    Starting,
    /// It has been ready in this run.
    Running,
    /// Asked to end; or it has ended, and some of its processes have not.
    Stopping,
    /// The rest of it was sent KILL, or is about to be.
    Killing,
    /// It ended by itself and will be started again.
    Backoff,
    /// It ended by itself or could not be started, and waits for a request.
    Failed,
    /// A process of it survives KILL.
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
    /// What was requested.
    pub desired: Desired,
    /// The state of the engine.
    pub state: State,
    /// Last answer of the readiness probe; false before the first one, null without a probe.
    pub ready: Option<bool>,
    /// Why the last call of the readiness probe failed; null after one that succeeded.
    #[serde(default)]
    pub ready_error: Option<String>,
    /// Since when `state` holds.
    pub since: String,
    /// Highest sequence of a request that passed the sequence check.
    pub sequence: u64,
    /// The present life of the engine, while any of its processes exists.
    pub run: Option<Run>,
    /// The archive of classes that the options of the present run's server JVM name. It is looked for
    /// when the engine is ready; none if no option names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
    /// How often the engine was started since the manager started.
    pub starts: u64,
    /// How the last run ended.
    pub last_exit: Option<Exit>,
    /// The last request that passed the sequence check.
    pub last_request: Option<LastRequest>,
    /// The mounted config; null without `--config`.
    pub config: Option<Config>,
    /// Reason the engine is not simply running, or what it waits for.
    pub reason: Option<Reason>,
    /// When the manager starts the stopped engine by itself; null if it waits for a request.
    #[serde(default)]
    pub resume: Option<Resume>,
}

/// A start that the manager makes by itself, unless a request with a higher sequence comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resume {
    /// When.
    pub at: String,
    /// Checksum of the config that the engine must be started with; null if any will do.
    pub checksum: Option<String>,
}

/// The manager's own part of the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Version of the binary.
    pub version: String,
    /// The version that it has taken over from while the engine ran on; none if the container was
    /// started with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded_from: Option<String>,
    /// Random, different at each start of the manager.
    pub boot_id: String,
    /// Pid in the manager's own namespace.
    pub pid: u32,
    /// When the manager started.
    pub since: String,
    /// Whether `desired`, `sequence` and `last_request` would all survive a crash now.
    pub durable: bool,
    /// The pod, as far as the downward API provides it.
    pub pod: Pod,
    /// Lines of the manager's own log that were dropped because nothing read the log.
    #[serde(default)]
    pub log_lines_lost: u64,
    /// What is wrong with the manager itself at present, sorted by code.
    #[serde(default)]
    pub errors: Vec<ManagerError>,
}

/// Something that the manager cannot do at present, and tries again. The engine is not affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerError {
    /// For programs.
    pub code: String,
    /// For people: what is wrong and what to do.
    pub message: String,
    /// Since when.
    pub since: String,
}

/// Which pod this is; null where the downward API does not provide it.
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
    /// When the leader was spawned.
    pub started_at: String,
    /// Checksum of the config the engine was started with; null if not known for certain.
    pub checksum: Option<String>,
    /// Where that config came from.
    pub config: ConfigChoice,
    /// The mounted config changed while the engine read it.
    #[serde(default)]
    pub config_uncertain: bool,
}

/// An archive of classes, which a JVM maps instead of loading them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Archive {
    /// The file.
    pub path: String,
    /// Whether the JVM has mapped it. One that it does not fit ignores it, and starts slower.
    pub used: bool,
}

/// How a run ended. Exactly one of `code` and `signal` is set, or none if no manager saw the end:
/// then `took_ms` is 0, and `ran_ms` and `at` are those of the next manager's start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Exit {
    /// Id of the run.
    pub run: String,
    /// Exit code of the leader.
    pub code: Option<i32>,
    /// Signal that ended the leader.
    pub signal: Option<i32>,
    /// Who or what ended it.
    pub reason: ExitReason,
    /// From the first step of the stop, or the leader's own end, until no process was left.
    pub took_ms: u64,
    /// From spawn until no process was left.
    pub ran_ms: u64,
    /// When no process was left.
    pub at: String,
    /// Processes that outlived leader and server and had to be ended.
    #[serde(default)]
    pub stragglers: Vec<Process>,
    /// Orphans the manager adopted that are not the engine's; they were left alone.
    #[serde(default)]
    pub strangers: Vec<Process>,
    /// How many more there were: each list has a hundred at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnamed: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Exit {
    /// The code a shell would show: the exit code, or 128 + signal; none if nobody saw the end.
    pub fn shell_code(&self) -> Option<i32> {
        self.code.or_else(|| self.signal.map(|signal| 128 + signal))
    }
}

/// Who or what ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// It ended after the manager's stop signal.
    Stopped,
    /// It ended by itself, or by a signal (other than KILL) that the manager did not send.
    Exited,
    /// It was ended by KILL, sent by the manager or by another process.
    Killed,
    /// The kernel killed it because memory ran out.
    Oom,
    /// It ended together with its manager, so nobody saw how: the container was killed as a whole.
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

/// A process, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Pid in the manager's namespace.
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
}

/// The last request, accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRequest {
    /// Its sequence.
    pub sequence: u64,
    /// Stop or start.
    pub kind: RequestKind,
    /// Whether it was accepted.
    pub accepted: bool,
    /// Who sent it.
    pub by: String,
    /// When it was accepted or refused.
    pub at: String,
}

/// The mounted config.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Checksum of all files that are not live; null if they cannot be read as one generation.
    pub checksum: Option<String>,
    /// The engine runs on another config than the mounted one; null if that is not known.
    pub drift: Option<bool>,
    /// Every file, sorted by path.
    pub files: Vec<ConfigFile>,
    /// The files that the checksum of the engine's config covers, sorted by path, while that may be
    /// another one than the mounted config; null otherwise, or where they are not known.
    #[serde(default)]
    pub run_files: Option<Vec<ConfigFile>>,
    /// Checksum of the last generation whose engine was ready and then up for a minute.
    pub last_good: Option<String>,
    /// What is wrong with the mounts and what to do; one message per problem.
    pub errors: Vec<String>,
    /// When the mounts were last read.
    pub observed_at: Option<String>,
}

/// One file of the config.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConfigFile {
    /// Path below the config directory, `NAME/…` with named directories.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Reloaded by the engine itself, and so not part of the checksum.
    pub live: bool,
    /// SHA-256 of its content without `cluster.initial_master_nodes`; absent where that is not in it, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formed_sha256: Option<String>,
}

/// What the engine waits for, or why it is held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reason {
    /// For programs.
    pub code: String,
    /// For people: what is wrong and what to do.
    pub message: String,
}
