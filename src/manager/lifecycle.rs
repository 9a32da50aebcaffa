//! The engine's state machine: `step(now, event)` changes plain data and returns the effects that
//! the supervisor must carry out. No clock, no I/O, no async: what is checked is what ships.
//!
//! ```text
//!            Boot / Start / Backoff over                    Ready
//!  Stopped ───────────────────────────► Starting ───────────────────► Running
//!  Failed  ◄──── held ────┐                │ Stop, Terminate, own end    │
//!  Backoff ◄── restart ───┤                ▼                             ▼
//!                         │   Draining ─► Signalled ─► (Dumping) ─► Killing ─► Stuck
//!                         │                │ leader gone                │
//!                         └── tree empty ◄─┴─► Lingering ─► Straggling ─┘
//! ```
//! * What was requested ([`Intent`]), the current phase ([`Phase`]) and how the last run ended are
//!   three fields.
//! * A request is *decided* in up to three steps (verify the config, write the intent down, act);
//!   meanwhile [`Lifecycle::is_deciding`] holds and the supervisor takes no other request. TERM,
//!   timers and deaths are taken at any time.
//! * Timers are part of the state: the supervisor sleeps until the earliest of
//!   [`Lifecycle::timers`] and then passes it in as an event.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

mod commit;
mod ending;
mod event;
mod intent;
mod journal;
mod request;
mod start;
mod stop;
mod upgrade;
mod view;

use std::collections::BTreeMap;
use std::mem;

use commit::Deciding;
use journal::{JournalVersions, LateJournal};
use request::RefusedResume;
use stayput_api::{Accepted, ConfigChoice, Exit, Refusal};

pub use crate::exit_status::ExitStatus;
pub use commit::Act;
pub use ending::Ending;
pub use event::{Event, Prepared, Recovered, Timer, Tree};
pub use intent::{Asked, Fencing, Held, HeldCode, Intent, Judged, Request, Resume};
pub use start::{Origin, Run};
pub use upgrade::{Checked, TakenOver};
pub use view::{LAST_INSTANT, Phase, timestamp};

/// A length of time, or an instant since the Unix epoch, in milliseconds.
pub type Millis = u64;

/// All data of the manager about its engine, and all decisions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lifecycle {
    policy: Policy,
    phase: Phase,
    /// Time since when the state in the status has been the same.
    since: Millis,
    intent: Intent,
    deciding: Option<Deciding>,
    /// When the config was first prepared for the start that is being decided.
    preparing_since: Option<Millis>,
    run: Option<Run>,
    ending: Option<Ending>,
    last_exit: Option<Exit>,
    /// Shell code of the last run or failed spawn in this boot, for the manager's own exit code.
    own_code: Option<i32>,
    starts: u64,
    /// Times when runs ended by themselves, within [`Limits::RESTART_WINDOW`].
    own_ends: Vec<Millis>,
    /// Reason why the engine does not run, if that is not part of the intent.
    failure: Option<Held>,
    /// Reason why a start that is due by [`Intent::resume`] was not made.
    resume_refused: Option<RefusedResume>,
    /// Set if the journal was not read in time, until it is followed, or a start was made without it.
    late_journal: Option<LateJournal>,
    /// The highest sequence that a drain ahead of a stop had in this boot.
    drained: u64,
    /// True if the last stop asked that the manager ends when the engine is stopped.
    exit_after_stop: bool,
    journal: JournalVersions,
    /// True if the first TERM was received.
    terminating: bool,
    /// Exit code with which the manager ends, when nothing is left to answer or to write.
    exit: Option<i32>,
    timers: BTreeMap<Timer, Millis>,
    /// Instant of the step that is being taken; 0 between steps, so that equal states are equal.
    now: Millis,
    /// Effects of the step that is being taken; empty between steps.
    out: Vec<Effect>,
}

impl Lifecycle {
    /// A manager that has not yet read its journal.
    pub fn new(policy: Policy, now: Millis) -> Self {
        Self {
            policy,
            phase: Phase::Stopped,
            since: now,
            intent: Intent::default(),
            deciding: None,
            preparing_since: None,
            run: None,
            ending: None,
            last_exit: None,
            own_code: None,
            starts: 0,
            own_ends: Vec::new(),
            failure: None,
            resume_refused: None,
            late_journal: None,
            drained: 0,
            exit_after_stop: false,
            journal: JournalVersions::default(),
            terminating: false,
            exit: None,
            timers: BTreeMap::new(),
            now: 0,
            out: Vec::new(),
        }
    }

    /// Takes one event and returns the effects to carry out, in order.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let before = self.phase.state();
        let is_boot = matches!(event, Event::Boot(_) | Event::JournalRead(_));
        self.now = now;
        match event {
            Event::Boot(recovered) => self.boot(recovered),
            Event::JournalRead(recovered) => self.journal_read(recovered),
            Event::Stop { request, by } => self.stop_requested(request, by),
            Event::Start { request, by } => self.start_requested(request, by),
            Event::Drain(request) => self.drain_requested(request),
            Event::Prepared(result) => self.prepared(result),
            Event::Persisted(version) => self.persisted(version),
            Event::PersistFailed { version, error } => {
                self.journal.error = Some(error);
                self.persist_failed(version);
            }
            Event::Spawned { id, pid, environment } => self.spawned(id, pid, environment),
            Event::SpawnFailed { code, shortage, message } => {
                self.spawn_failed(code, shortage, message);
            }
            Event::ConfigOutdated => self.config_outdated(),
            Event::ConfigChanged => self.config_changed(),
            Event::Ready => self.became_ready(),
            Event::Kept => {
                self.timers.remove(&Timer::Keep);
            }
            Event::EngineExited { status, oom } => self.engine_exited(status, oom),
            Event::Tree(tree) => self.tree_seen(tree),
            Event::Timer(timer) => self.timer_fired(timer),
            Event::Upgrade => self.upgrade_requested(),
            Event::ProgramChecked(result) => self.program_checked(result),
            Event::ServerClosed => self.server_closed(),
            Event::NotExecuted(error) => self.not_executed(error),
            Event::Terminate => self.terminate(),
            Event::Forward(signal) => self.forward(signal),
        }
        if !is_boot && self.phase.state() != before {
            self.since = now;
        }
        if self.deciding.is_none() {
            self.preparing_since = None;
        }
        self.keep_trying_to_write();
        self.end_after_stop();
        self.limit_wait_for_journal();
        self.end_when_settled();
        self.follow_resume();
        self.now = 0;
        mem::take(&mut self.out)
    }

    fn timer_fired(&mut self, timer: Timer) {
        let Some(due) = self.timers.remove(&timer) else { return };
        let is_late = self.now > due.saturating_add(Limits::LATENESS);
        let is_put_off = is_late && self.put_resume_off();
        match timer {
            Timer::Journal => self.journal_timed_out(),
            Timer::Rewrite => self.record(),
            Timer::Prepare => self.prepare_timed_out(),
            Timer::Upgrade => self.upgrade_timed_out(),
            Timer::Settle => self.became_ready(),
            Timer::Prove => self.proved(),
            // It goes on, but nothing waits for it any more.
            Timer::Keep => {}
            Timer::Backoff => self.backoff_over(),
            Timer::Resume if is_put_off => {}
            Timer::Resume => self.resume_due(),
            Timer::Drain => self.drain_over(),
            Timer::Grace => self.grace_over(),
            Timer::Dump | Timer::TreeGrace => self.kill_due(),
            Timer::Kill => self.kill_over(),
        }
    }

    fn forward(&mut self, signal: i32) {
        const SIGINT: i32 = 2;
        if self.leader_is_alive() {
            self.out.push(Effect::SignalLeader(signal));
        } else if signal == SIGINT {
            // There is no engine to interrupt, so the signal is for the manager: probably Ctrl-C in
            // a terminal.
            self.terminate();
        }
    }
}

/// Fixed numbers of the lifecycle.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Time after which a running engine counts as ready if there is no readiness probe.
    pub const SETTLE_TIME: Millis = 10_000;
    /// Length of a drain ahead of a stop, if no stop comes. As long as the reconciler drains at most.
    pub const DRAIN_AHEAD: Millis = 10_000;
    /// Time that a JVM gets to print its threads before it is killed.
    pub const THREAD_DUMP_TIMEOUT: Millis = 500;
    /// Time that KILL may take before a process counts as stuck.
    pub const KILL_TIMEOUT: Millis = 10_000;
    /// Time that a request waits until the journal is written.
    pub const JOURNAL_WRITE_TIMEOUT: Millis = 5_000;
    /// Delay before a failed write of the journal is retried.
    pub const JOURNAL_RETRY_INTERVAL: Millis = 10_000;
    /// Number of ends in a row, together with the manager and before it was ready, that hold an engine.
    pub const MAX_UNSEEN_ENDS: u32 = 3;
    /// Delay before a refused start after `resumeAfter` is retried.
    pub const RESUME_RETRY_INTERVAL: Millis = 60_000;
    /// Lateness of a timer that shows that the manager was frozen, or away.
    pub const LATENESS: Millis = 10_000;
    /// Time that the start after `resumeAfter` then waits for callers that could not reach the manager.
    pub const RESUME_GRACE: Millis = 60_000;
    /// Time that an engine must have been up since it was ready before its config replaces the last good one.
    pub const PROOF_TIME: Millis = 60_000;
    /// Time that an upgrade waits until a config that has proved itself is kept.
    pub const KEEP_TIMEOUT: Millis = 60_000;
    /// Time that verifying and staging a config may take.
    pub const PREPARE_TIMEOUT: Millis = 60_000;
    /// Time that each step of an upgrade may take.
    pub const UPGRADE_TIMEOUT: Millis = 10_000;
    /// First wait before a restart in place; it doubles with each end within the window.
    pub const MIN_BACKOFF: Millis = 1_000;
    /// The longest wait before a restart in place.
    pub const MAX_BACKOFF: Millis = 60_000;
    /// Window in which ends are counted.
    pub const RESTART_WINDOW: Millis = 600_000;
    /// This many ends within the window lead to a restart; the next one is final.
    pub const MAX_RESTARTS: usize = 5;
}

/// Reaction to an engine that ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnExit {
    /// The manager ends with the engine's code and the container's restart policy applies.
    #[default]
    Exit,
    /// The engine is started again in place, with back-off.
    Restart,
    /// The manager stays up and waits for a request.
    Hold,
}

/// The settings that the lifecycle reads. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Policy {
    /// True if requests can come: a listener or a socket is configured.
    pub api: bool,
    /// Uid of our own pod, where known.
    pub pod: Option<String>,
    /// Signal that stops the engine.
    pub stop_signal: i32,
    /// Time from the stop signal to KILL on a requested stop.
    pub grace: Millis,
    /// Time from TERM to KILL for processes that outlive leader and server.
    pub tree_grace: Millis,
    /// Time that the engine is unready before the stop signal.
    pub drain: Millis,
    /// Limit for the whole stop when the manager itself must end; without one the kubelet's limit applies.
    pub termination_grace: Option<Millis>,
    /// True to ask a JVM for its threads before KILL.
    pub thread_dump: bool,
    /// Reaction to an engine that ends without a request.
    pub on_exit: OnExit,
    /// Exit codes of a clean stop for which the manager exits with 0.
    pub success_exit: Vec<i32>,
    /// True if a readiness probe is configured; without one the engine is ready after
    /// [`Limits::SETTLE_TIME`].
    pub probe: bool,
    /// True if the engine reads a staged copy, which does not change while it runs.
    pub staged: bool,
    /// True to keep the generation that last proved itself.
    pub keep_last_good: bool,
    /// True to start an engine that comes back by itself on the generation it was last told to run.
    pub pin_config: bool,
    /// Random per boot: spreads the restarts of many pods.
    pub seed: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            api: true,
            pod: None,
            stop_signal: 15,
            grace: 120_000,
            tree_grace: 2_000,
            drain: 0,
            termination_grace: None,
            thread_dump: true,
            on_exit: OnExit::Exit,
            success_exit: Vec::new(),
            probe: false,
            staged: false,
            keep_last_good: false,
            pin_config: false,
            seed: 0,
        }
    }
}

/// Role in which a generation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeepAs {
    /// An engine that comes back by itself runs on this generation.
    Pinned,
    /// The generation became ready, and has not proved itself yet. If there is no last good one, it
    /// becomes that at once.
    Candidate,
    /// The generation has proved itself.
    LastGood,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Verify and stage a config; answered by [`Event::Prepared`].
    Prepare {
        /// The config to prepare.
        choice: ConfigChoice,
        /// Checksum that the config must have.
        expected: Option<String>,
        /// The kept generation with this checksum is to be used instead. If there is none, `choice`
        /// is used all the same: an engine that comes back by itself must come back.
        pinned: Option<String>,
    },
    /// Write this version of the journal ([`Lifecycle::journaled_intent`]); answered by
    /// [`Event::Persisted`] or [`Event::PersistFailed`].
    Persist(u64),
    /// Spawn the leader, if the prepared config is still the mounted one; answered by
    /// [`Event::Spawned`], [`Event::SpawnFailed`] or
    /// [`Event::ConfigOutdated`].
    Spawn(Prepared),
    SignalLeader(i32),
    /// Signal server JVMs that outlived the leader.
    SignalServer(i32),
    /// Send TERM to the processes that outlived leader and server.
    TermStragglers,
    /// Send QUIT to the server JVM, so that it prints its threads.
    DumpThreads,
    /// Send KILL to every process of the engine.
    KillTree,
    /// Scan the tree; answered by [`Event::Tree`].
    ScanTree,
    /// Keep the generation of the present run; as the last good one it is answered by
    /// [`Event::Kept`].
    Keep(KeepAs),
    /// Ask the program whether it can take over; answered by [`Event::ProgramChecked`].
    CheckProgram,
    /// Stop waiting for the answer to [`Self::CheckProgram`].
    EndCheck,
    /// Answer open requests and close all connections; answered by [`Event::ServerClosed`].
    CloseServer,
    /// Execute the program; answered by [`Event::NotExecuted`] if that fails.
    Execute,
    /// Serve again: the program was not executed, for this reason.
    OpenServer(String),
    /// Answer the request that is being decided.
    Reply(Result<Accepted, Refusal>),
    /// End the manager with this code.
    Exit(i32),
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test names the cases it looks for")]
mod tests;
