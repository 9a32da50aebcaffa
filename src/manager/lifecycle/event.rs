//! What can happen to the lifecycle.

use super::{Intent, Millis};
use stayput_api::{ConfigChoice, Exit, Process, Refusal, StartRequest, StopRequest};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// The journal was read; comes once, first.
    Boot(Recovered),
    /// `POST /es/stop`, authorised.
    Stop {
        request: StopRequest,
        /// Who sent it.
        by: String,
    },
    /// `POST /es/start`, authorised.
    Start {
        request: StartRequest,
        /// Who sent it.
        by: String,
    },
    /// Answer to [`super::Effect::Prepare`].
    Prepared(Result<Prepared, Refusal>),
    /// This version of the journal, and so every earlier one, is on disk.
    Persisted(u64),
    /// This version could not be written.
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
    },
    /// The leader could not be spawned.
    SpawnFailed {
        /// What a shell would exit with: 127 not found, 126 not executable.
        code: i32,
        /// The system's error, with the command.
        message: String,
    },
    /// The mounted config changed between its verification and the spawn; nothing was spawned.
    ConfigOutdated,
    /// The mounted config changed.
    ConfigChanged,
    /// The readiness probe succeeded.
    Ready,
    /// The leader was reaped.
    EngineExited {
        /// How it ended.
        status: ExitStatus,
        /// The kernel's out-of-memory count rose during the run.
        oom: bool,
    },
    /// What is left of the engine: after [`super::Effect::ScanTree`] and, while a run is ending,
    /// after every death.
    Tree(Tree),
    /// A timer's time has come.
    Timer(Timer),
    /// TERM to the manager.
    Terminate,
    /// Another signal to the manager.
    Forward(i32),
}

/// What was read from the journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recovered {
    /// There is no journal: the first start in this pod.
    Fresh,
    /// The intent and the last exit of an earlier boot.
    Journal {
        /// What was requested.
        intent: Box<Intent>,
        /// How the last run ended, as far as it was seen.
        last_exit: Option<Exit>,
    },
    /// There is a journal that cannot be used: why.
    Unreadable(String),
}

/// A config that was verified and, where configured, staged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prepared {
    /// Its checksum, if it could be read as one generation.
    pub checksum: Option<String>,
    /// Where it came from.
    pub choice: ConfigChoice,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ExitStatus {
    /// The code a shell would show: the exit code, or 128 + signal.
    pub const fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// The processes of a run besides its leader.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// The engine, or one of its processes, is a JVM that can print its threads.
    pub jvm: bool,
    /// Server JVMs: they hold the data path and may take their time.
    pub server: Vec<Process>,
    /// Everything else of the engine.
    pub stragglers: Vec<Process>,
    /// Adopted orphans of others.
    pub strangers: Vec<Process>,
    /// Processes are left that cannot be read: why, and what to do.
    pub unseen: Option<String>,
}

impl Tree {
    /// Nothing of the engine is left.
    pub fn is_empty(&self) -> bool {
        self.server.is_empty() && self.stragglers.is_empty() && self.unseen.is_none()
    }
}

/// What the lifecycle waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The drain is over.
    Drain,
    /// The grace of leader and server is over.
    Grace,
    /// The time of the thread dump is over.
    Dump,
    /// The grace of the stragglers is over.
    TreeGrace,
    /// The time of KILL is over.
    Kill,
    /// An engine without a probe lived long enough.
    Settle,
    /// The next restart in place is due.
    Backoff,
    /// The time of the journal is over.
    Journal,
    /// The intent is not on disk and is written once more.
    Rewrite,
    /// The time to verify and stage the config is over.
    Prepare,
}

impl super::Lifecycle {
    /// The timers that run, with the instants at which they are due.
    pub fn timers(&self) -> impl Iterator<Item = (Timer, Millis)> {
        self.timers.iter().map(|(timer, due)| (*timer, *due))
    }
}
