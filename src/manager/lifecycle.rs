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
mod drain;
mod effect;
mod ended_with_manager;
mod ending;
mod event;
mod intent;
mod journal;
mod late_journal;
mod phase;
mod policy;
mod prepare;
mod request;
mod resume;
mod run_over;
mod sequence;
mod start;
mod stop;
mod terminate;
mod upgrade;
mod view;

use std::collections::BTreeMap;

use stayput_api::Exit;

pub use crate::exit_status::ExitStatus;
pub use commit::Act;
pub use effect::{Effect, KeepAs};
pub use ending::Ending;
pub use event::{Event, Prepared, Recovered, Timer, Tree};
pub use intent::{Asked, Fencing, Held, HeldCode, Intent, Judged, Request, Resume};
pub use phase::Phase;
pub use policy::{Limits, OnExit, Policy};
pub use start::{Origin, Run};
pub use upgrade::{Checked, TakenOver};
pub use view::LAST_INSTANT;
pub use view::timestamp;

use commit::Deciding;
use journal::JournalVersions;
use late_journal::LateJournal;
use resume::RefusedResume;

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
        }
    }

    /// Takes one event and returns the effects to carry out, in order.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let before = self.phase.state();
        let is_boot = matches!(event, Event::Boot(_) | Event::JournalRead(_));
        let mut effects = Vec::new();
        let out = &mut effects;
        match event {
            Event::Boot(recovered) => self.boot(now, recovered, out),
            Event::JournalRead(recovered) => self.journal_read(now, recovered, out),
            Event::Stop { request, by } => self.stop_requested(now, request, by, out),
            Event::Start { request, by } => self.start_requested(now, request, by, out),
            Event::Drain(request) => self.drain_requested(now, request, out),
            Event::Prepared(result) => self.prepared(now, result, out),
            Event::Persisted(version) => self.persisted(now, version, out),
            Event::PersistFailed { version, error } => {
                self.journal.error = Some(error);
                self.persist_failed(now, version, out);
            }
            Event::Spawned { id, pid } => self.spawned(now, id, pid, out),
            Event::SpawnFailed { code, shortage, message } => {
                self.spawn_failed(now, code, shortage, message, out);
            }
            Event::ConfigOutdated => self.config_outdated(now, out),
            Event::ConfigChanged => self.config_changed(out),
            Event::Ready => self.became_ready(now, out),
            Event::Kept => {
                self.timers.remove(&Timer::Keep);
            }
            Event::EngineExited { status, oom } => self.engine_exited(now, status, oom, out),
            Event::Tree(tree) => self.tree_seen(now, tree, out),
            Event::Timer(timer) => self.timer_fired(now, timer, out),
            Event::Upgrade => self.upgrade_requested(now, out),
            Event::ProgramChecked(result) => self.program_checked(now, result, out),
            Event::ServerClosed => self.server_closed(out),
            Event::NotExecuted(error) => self.not_executed(error, out),
            Event::Terminate => self.terminate(now, out),
            Event::Forward(signal) => self.forward(now, signal, out),
        }
        if !is_boot && self.phase.state() != before {
            self.since = now;
        }
        if self.deciding.is_none() {
            self.preparing_since = None;
        }
        self.keep_trying_to_write(now);
        self.end_after_stop();
        self.limit_wait_for_journal(now);
        self.end_when_settled(&mut effects);
        self.follow_resume();
        effects
    }

    fn timer_fired(&mut self, now: Millis, timer: Timer, out: &mut Vec<Effect>) {
        let Some(due) = self.timers.remove(&timer) else { return };
        let is_late = now > due.saturating_add(Limits::LATENESS);
        let is_put_off = is_late && self.put_resume_off(now, out);
        match timer {
            Timer::Journal => self.journal_timed_out(now, out),
            Timer::Rewrite => self.record(out),
            Timer::Prepare => self.prepare_timed_out(now, out),
            Timer::Upgrade => self.upgrade_timed_out(now, out),
            Timer::Settle => self.became_ready(now, out),
            Timer::Prove => self.proved(now, out),
            // It goes on, but nothing waits for it any more.
            Timer::Keep => {}
            Timer::Backoff => self.backoff_over(now, out),
            Timer::Resume if is_put_off => {}
            Timer::Resume => self.resume_due(now, out),
            Timer::Drain => self.drain_over(now, out),
            Timer::Grace => self.grace_over(now, out),
            Timer::Dump | Timer::TreeGrace => self.kill_due(now, out),
            Timer::Kill => self.kill_over(out),
        }
    }

    fn forward(&mut self, now: Millis, signal: i32, out: &mut Vec<Effect>) {
        const SIGINT: i32 = 2;
        if self.leader_is_alive() {
            out.push(Effect::SignalLeader(signal));
        } else if signal == SIGINT {
            // There is no engine to interrupt, so the signal is for the manager: probably Ctrl-C in
            // a terminal.
            self.terminate(now, out);
        }
    }
}

#[cfg(test)]
#[allow(clippy::wildcard_enum_match_arm, reason = "a test names the cases it looks for")]
mod tests;
