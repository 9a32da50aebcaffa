//! The data of the supervisor.
//!
//! `run` waits for signals, requests and results, `events` turns them into events of the lifecycle,
//! `perform` carries out the effects.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::hand_over::HandOver;
use super::handle::{Call, Handle, Reply};
use super::journal::Journal;
use super::journal_writer::JournalWriter;
use super::prepare::Preparing;
use super::probe::Prober;
use super::random_id::random_number;
use super::readiness::Readiness;
use super::run::Reading;
use super::status::{Publisher, StartedOn};
use super::upgrade::{Asked, Opening, Serving};
use super::waiting::WaitingRequests;
use crate::config_watch::{ConfigWatch, Observed, Prepared};
use crate::errors::{ErrorCode, Errors};
use crate::lifecycle::{Lifecycle, Policy};
use crate::process::{
    Inherited, KeptListener, Launched, Program, Reaper, Signals, TempDir, Tree, oom,
};
use crate::worker::Worker;
use stayput_api::{self as api, ManagerError};
use stayput_http::telemetry::Log;

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
    pub(super) parts: SupervisorParts,
    pub(super) lifecycle: Lifecycle,
    pub(super) clock: Clock,
    pub(super) tree: Option<Tree>,
    /// The present run's leader, if its program was not executed when it was launched.
    pub(super) late: Option<Launched>,
    /// The manager's descendants from before the first launch: not the engine's.
    pub(super) inherited: Inherited,
    /// Out-of-memory kills in our cgroup before the present run.
    pub(super) oom_kills: Option<u64>,
    pub(super) oom_counter: Option<oom::Counter>,
    pub(super) journal: Option<JournalWriter>,
    /// The journal, if reading it takes longer than the start of the manager waits.
    pub(super) reading: Option<Reading>,
    pub(super) readiness: Readiness,
    pub(super) publisher: Publisher,
    /// The config that is being prepared.
    pub(super) preparing: Option<Preparing>,
    /// The config that was prepared last: the next spawn uses it, and the run after that is on it.
    pub(super) prepared: Option<Prepared>,
    /// Task that keeps the prepared config as the last good one.
    pub(super) keeping: Option<JoinHandle<()>>,
    /// The prepared config as the status shows it; also of a run that was taken over.
    pub(super) started_on: Option<StartedOn>,
    /// Class-data archive of the present run's server JVM, once the engine is ready.
    pub(super) archive: Option<api::Archive>,
    /// Channel for the answer to the request that is being decided.
    pub(super) reply: Option<Reply>,
    pub(super) opening: Option<Opening>,
    pub(super) asked: Option<Asked>,
    pub(super) ended: Option<Ended>,
    pub(super) signals: Signals,
    pub(super) reaper: Reaper,
    pub(super) config: Option<watch::Receiver<Arc<Observed>>>,
    pub(super) errors: watch::Receiver<BTreeMap<ErrorCode, ManagerError>>,
    pub(super) calls: mpsc::Receiver<Call>,
    pub(super) waiting: WaitingRequests,
    /// True while code that only the start needed is still in memory.
    pub(super) startup_code_loaded: bool,
    /// Gets exit code and message when the manager is to end.
    pub(super) end: Option<oneshot::Sender<Ended>>,
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
            keeping: None,
            started_on: None,
            archive: None,
            reply: None,
            opening: None,
            asked: None,
            ended: None,
            signals,
            reaper: Reaper::new(),
            config,
            errors,
            calls,
            waiting: WaitingRequests::default(),
            startup_code_loaded: true,
            end: Some(end),
        };
        (supervisor, Handle::new(sender, status, watched, clock), ended)
    }
}
