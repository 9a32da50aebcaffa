//! The one task that owns the engine, its timers, its journal and every wait.
//!
//! The supervisor decides nothing: [`crate::lifecycle`] does. It turns signals, deaths, requests,
//! timers and results of slow disks into events, carries out the effects and publishes the status.
//! Work that may block (journal, config, temporary directory) runs elsewhere and reports by
//! message, so a hung disk blocks nothing else.

mod handle;
mod journal;
mod perform;
mod probe;
mod readiness;
mod run;
mod state_dir;
mod status;
mod upgrade;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::config_watch::{ConfigWatch, Observed, Prepared};
use crate::errors::{ErrorCode, Errors};
use crate::lifecycle::{Lifecycle, Millis, Policy};
use crate::process::{
    Inherited, KeptListener, Launched, Program, Reaper, Signals, TempDir, Tree, oom,
};
use crate::variables::{Variables, VariablesFile};
use crate::worker::Worker;
use handle::{Reply, WaitingRequests};
use journal::JournalWriter;
use perform::Preparing;
use readiness::Readiness;
use run::Reading;
use status::{Publisher, StartedOn};
use stayput_api as api;
use stayput_api::ManagerError;
use stayput_http::telemetry::Log;
use upgrade::{Asked, Opening};

pub(crate) use handle::Call;
pub use handle::{Control, Handle};
pub use journal::Journal;
pub use probe::{Probe, Prober};
pub use upgrade::{CAN_TAKE_OVER, HandOver, Serving, Taken};

// The data of the supervisor.
//
// `run` waits for signals, requests and results, `events` turns them into events of the lifecycle,
// `perform` carries out the effects.

/// Most requests that wait for the supervisor; more wait in their connections.
const MAX_CALLS: usize = 16;

/// Parts of a supervisor: the engine's command, and everything needed to start and stop the engine.
#[derive(Debug)]
pub struct SupervisorParts {
    /// The command, passed on as given.
    pub command: Vec<OsString>,
    /// Settings for starting and stopping the engine.
    pub policy: Policy,
    /// The engine's readiness probe.
    pub prober: Option<Arc<Prober>>,
    pub config: Option<Arc<ConfigWatch>>,
    /// The thread that reads from the engine's processes. Without one, the supervisor waits for them.
    pub reader: Option<Worker>,
    /// The thread that opens the program of another version; only with an API.
    pub opener: Option<Worker>,
    /// The engine's temporary directory, emptied between runs by this thread.
    pub temp_dir: Option<(Arc<TempDir>, Worker)>,
    /// The file with variables of the engine.
    pub variables: Option<Arc<VariablesFile>>,
    /// The journal, and the thread that does nothing else.
    pub journal: Option<(Journal, Worker)>,
    /// Identity of this pod.
    pub pod: api::Pod,
    /// Errors of the manager itself; shown in the status.
    pub errors: Errors,
    /// Number of lost lines of the log; shown in the status.
    pub lines_lost: watch::Receiver<u64>,
    /// The log, if it is written by a thread.
    pub log: Option<Log>,
    /// Our own program, if it can be found.
    pub program: Option<Program>,
    /// The listener of the API.
    pub listener: KeptListener,
    /// State of serving the API; read by the server.
    pub serving: Arc<watch::Sender<Serving>>,
    /// State that another program has handed over to this one.
    pub hand_over: Option<HandOver>,
}

/// The manager is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: i32,
    /// Reason for the termination log.
    pub message: String,
}

/// The supervisor, before and while it runs.
pub struct Supervisor {
    parts: SupervisorParts,
    lifecycle: Lifecycle,
    clock: Clock,
    tree: Option<Tree>,
    /// The present run's leader, if its program was not executed when it was launched.
    late: Option<Launched>,
    /// The manager's descendants from before the first launch: not the engine's.
    inherited: Inherited,
    /// Out-of-memory kills in our cgroup before the present run.
    oom_kills: Option<u64>,
    oom_counter: Option<oom::Counter>,
    journal: Option<JournalWriter>,
    /// The journal, if reading it takes longer than the start of the manager waits.
    reading: Option<Reading>,
    readiness: Readiness,
    publisher: Publisher,
    /// The config that is being prepared.
    preparing: Option<Preparing>,
    /// The config that was prepared last: the next spawn uses it, and the run after that is on it.
    prepared: Option<Prepared>,
    /// The variables that were prepared last, for the next spawn.
    variables: Option<Variables>,
    /// Task that keeps the prepared config as the last good one.
    keeping: Option<JoinHandle<()>>,
    /// The prepared config as the status shows it; also of a run that was taken over.
    started_on: Option<StartedOn>,
    /// Class-data archive of the present run's server JVM, once the engine is ready.
    archive: Option<api::Archive>,
    /// When that JVM is read again, if it did not let itself be read in time.
    read_again: Option<Millis>,
    /// Channel for the answer to the request that is being decided.
    reply: Option<Reply>,
    opening: Option<Opening>,
    asked: Option<Asked>,
    ended: Option<Ended>,
    signals: Signals,
    reaper: Reaper,
    config: Option<watch::Receiver<Arc<Observed>>>,
    /// Digest of the file with variables.
    environment: watch::Receiver<Option<String>>,
    errors: watch::Receiver<BTreeMap<ErrorCode, ManagerError>>,
    calls: mpsc::Receiver<Call>,
    waiting: WaitingRequests,
    /// True while code that only the start needed is still in memory.
    startup_code_loaded: bool,
    /// Gets exit code and message when the manager is to end.
    end: Option<oneshot::Sender<Ended>>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("lifecycle", &self.lifecycle).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Makes a supervisor, the handle for other modules, and the receiver of its end.
    pub fn new(
        parts: SupervisorParts,
        signals: Signals,
    ) -> (Self, Handle, oneshot::Receiver<Ended>) {
        let hand_over = parts.hand_over.as_ref();
        let clock = hand_over.map_or_else(Clock::start, |taken| Clock::go_on(taken.clock_ahead));
        let upgraded_from = hand_over.and_then(HandOver::upgraded_from);
        let lifecycle =
            Lifecycle::new(Policy { seed: random_number(), ..parts.policy.clone() }, clock.now());
        let readiness = Readiness::new(parts.prober.clone());
        let watched = parts.config.clone();
        let config = watched.as_deref().map(ConfigWatch::subscribe);
        let (publisher, status) =
            Publisher::new(parts.pod.clone(), clock.now(), &lifecycle, &readiness, upgraded_from);
        let (sender, calls) = mpsc::channel(MAX_CALLS);
        let (end, ended) = oneshot::channel();
        let inherited = Inherited::find().unwrap_or_else(|error| {
            // Without an API this does not matter: the manager ends with the leader.
            if parts.policy.api {
                tracing::warn!(
                    %error,
                    "the engine's processes cannot be seen: one that outlives its leader cannot be \
                     ended, and no engine is started beside it"
                );
            }
            Inherited::default()
        });
        let errors = parts.errors.subscribe();
        let variables = parts.variables.clone();
        // Without a file there is no sender.
        let environment =
            variables.as_ref().map_or_else(|| watch::channel(None).1, |file| file.subscribe());
        let supervisor = Self {
            parts,
            lifecycle,
            clock,
            tree: None,
            late: None,
            inherited,
            oom_kills: None,
            oom_counter: oom::Counter::find(),
            journal: None,
            reading: None,
            readiness,
            publisher,
            preparing: None,
            prepared: None,
            variables: None,
            keeping: None,
            started_on: None,
            archive: None,
            read_again: None,
            reply: None,
            opening: None,
            asked: None,
            ended: None,
            signals,
            reaper: Reaper::new(),
            config,
            environment,
            errors,
            calls,
            waiting: WaitingRequests::default(),
            startup_code_loaded: true,
            end: Some(end),
        };
        (supervisor, Handle::new(sender, status, watched, variables, clock), ended)
    }
}

/// A clock that shows the time of day and never jumps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Millis,
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { wall: time_of_day(), start: Instant::now() }
    }

    /// Goes on with the clock of the previous program, which was ahead of the time of day by this
    /// many milliseconds.
    fn go_on(ahead: i64) -> Self {
        Self { wall: time_of_day().saturating_add_signed(ahead), start: Instant::now() }
    }

    /// Milliseconds by which the clock is ahead of the time of day, which may have been set since
    /// the clock started.
    fn ahead(&self) -> i64 {
        self.now().wrapping_sub(time_of_day()).cast_signed()
    }

    fn now(&self) -> Millis {
        self.wall + millis(self.start.elapsed())
    }

    /// The tokio instant at which `due` is reached.
    fn instant(&self, due: Millis) -> Instant {
        self.start + Duration::from_millis(due.saturating_sub(self.wall))
    }
}

fn time_of_day() -> Millis {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

/// 64 random bits in hexadecimal. The id of a run is also the cookie by which its orphans are
/// recognised, so two ids must not be equal by chance.
///
/// # Panics
/// If the kernel has no random numbers; every kernel that can run an engine has them.
fn random_id() -> String {
    format!("{:016x}", random_number())
}

/// 64 random bits.
///
/// # Panics
/// The panic of [`random_id`].
fn random_number() -> u64 {
    let mut bytes = [0_u8; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    assert!(filled.is_ok(), "the kernel gives no random numbers");
    u64::from_ne_bytes(bytes)
}
