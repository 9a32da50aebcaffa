//! The events of the lifecycle.

use super::{Checked, ExitStatus, Intent, TakenOver};
use stayput_api::{
    ConfigChoice, DrainRequest, Exit, Process, Refusal, Run, StartRequest, StopRequest,
};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The journal was read, or did not answer in time. This is the first event and comes once.
    Boot(Recovered),
    /// The journal was read after all, after [`Recovered::NotYet`].
    JournalRead(Recovered),
    /// `POST /es/stop`, authorised.
    Stop {
        request: StopRequest,
        /// Caller that sent it.
        by: String,
    },
    /// `POST /es/start`, authorised.
    Start {
        request: StartRequest,
        /// Caller that sent it.
        by: String,
    },
    /// `POST /es/drain`, authorised.
    Drain(DrainRequest),
    /// `POST /es/upgrade`, authorised.
    Upgrade,
    /// Answer to [`super::Effect::CheckProgram`].
    ProgramChecked(Result<Checked, String>),
    /// Answer to [`super::Effect::CloseServer`].
    ServerClosed,
    /// Answer to [`super::Effect::Execute`]; there is no answer if the program is executed.
    NotExecuted(String),
    /// Answer to [`super::Effect::Prepare`].
    Prepared(Result<Prepared, Refusal>),
    /// This version of the journal, and so every earlier one, is on disk.
    Persisted(u64),
    /// This version of the journal could not be written.
    PersistFailed {
        version: u64,
        /// The system's error, with the file it is about.
        error: String,
    },
    /// The leader was spawned.
    Spawned {
        /// Id of the run.
        id: String,
        /// Pid of the leader.
        pid: u32,
        /// Digest of the file with the engine's variables, if there is one.
        environment: Option<String>,
    },
    /// The leader could not be spawned.
    SpawnFailed {
        /// The exit code of a shell: 127 not found, 126 not executable.
        code: i32,
        /// True if processes, memory or descriptors are used up: a later attempt may succeed.
        shortage: bool,
        /// The system's error, with the command.
        message: String,
    },
    /// The mounted config changed between its verification and the spawn; nothing was spawned.
    ConfigOutdated,
    /// The mounted config changed.
    ConfigChanged,
    /// The readiness probe succeeded.
    Ready,
    /// Answer to [`super::Effect::Keep`] with [`super::KeepAs::LastGood`]: the config that has
    /// proved itself is kept, or cannot be.
    Kept,
    /// The leader was reaped.
    EngineExited {
        /// Exit status of the leader.
        status: ExitStatus,
        /// True if the kernel's out-of-memory count rose during the run.
        oom: bool,
    },
    /// The remaining processes of the engine: after [`super::Effect::ScanTree`] and, while a run is
    /// ending, after every death.
    Tree(Tree),
    /// A timer is due.
    Timer(Timer),
    /// The manager received TERM.
    Terminate,
    /// The manager received another signal.
    Forward(i32),
}

/// Result of reading the journal at the start of the manager.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recovered {
    /// There is no journal: the first start in this pod.
    Fresh,
    /// The intent and the last exit of an earlier boot.
    Journal {
        /// The requested state.
        intent: Box<Intent>,
        /// How the last run ended, as far as the manager saw it.
        last_exit: Option<Exit>,
        /// The run whose end no manager recorded.
        run: Option<Box<Run>>,
    },
    /// Another program was this process before, and has executed this one.
    TakenOver(Box<TakenOver>),
    /// There is a journal that cannot be used, for this reason.
    Unreadable(String),
    /// The disk did not answer in time, and is still waited for.
    NotYet(String),
}

/// A config that was verified and, where configured, staged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prepared {
    /// Checksum of the config, if it could be read as one generation.
    pub checksum: Option<String>,
    /// Origin of the config.
    pub choice: ConfigChoice,
}

/// The processes of a run besides its leader.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// True if the engine, or one of its processes, is a JVM that can print its threads.
    pub jvm: bool,
    /// Server JVMs: they hold the data path and may take some time to end.
    pub server: Vec<Process>,
    /// All other processes of the engine.
    pub stragglers: Vec<Process>,
    /// Adopted orphans that are not the engine's.
    pub strangers: Vec<Process>,
    /// Reason why some processes cannot be read, and what to do.
    pub unseen: Option<String>,
}

impl Tree {
    /// True if no process of the engine is left.
    pub fn is_empty(&self) -> bool {
        self.server.is_empty() && self.stragglers.is_empty() && self.unseen.is_none()
    }
}

/// Timers that the lifecycle waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The drain is over, of a stop or ahead of one.
    Drain,
    /// The grace of leader and server is over.
    Grace,
    /// The time for the thread dump is over.
    Dump,
    /// The grace of the stragglers is over.
    TreeGrace,
    /// The time for KILL to take effect is over.
    Kill,
    /// An engine without a probe has run long enough to count as ready.
    Settle,
    /// The config of a ready engine has proved itself.
    Prove,
    /// The time for keeping the proved config is over.
    Keep,
    /// The next restart in place is due.
    Backoff,
    /// The start after a stop with `resumeAfter` is due, or is retried.
    Resume,
    /// The time for writing the journal is over.
    Journal,
    /// The intent is not on disk and is written again.
    Rewrite,
    /// The time for verifying and staging the config is over.
    Prepare,
    /// The time for a step of an upgrade is over.
    Upgrade,
}
