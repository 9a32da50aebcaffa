//! The loop: waits for whatever happens next, turns it into an event, carries out the effects.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};

use super::clock::Clock;
use super::handle::{Call, Handle, Reply};
use super::identity::random_number;
use super::journal::Journal;
use super::journal_writer::JournalWriter;
use super::prepare::{Preparing, Ready};
use super::probe::Probe;
use super::readiness::Readiness;
use super::status::Publisher;
use crate::config_watch::{ConfigWatch, Observed, Prepared};
use crate::lifecycle::{self, Event, Lifecycle, Policy, Recovered};
use crate::process::{self, Inherited, Reaper, Signals, TempDir, Tree, oom};
use stayput_api::{self as api, Refusal};

/// How long reading the journal may take before it counts as unreadable.
const JOURNAL_READ: Duration = Duration::from_secs(5);
/// How long the last version of the journal may take when the manager ends.
const JOURNAL_FLUSH: Duration = Duration::from_secs(1);
/// Requests that wait for the supervisor; more wait in their connections.
const CALLS: usize = 16;

/// What is supervised and how.
#[derive(Debug)]
pub struct Engine {
    /// The command, passed on as given.
    pub command: Vec<OsString>,
    /// How to treat it.
    pub policy: Policy,
    /// When it is ready.
    pub probe: Option<Probe>,
    /// Its config.
    pub config: Option<Arc<ConfigWatch>>,
    /// Its temporary directory, emptied between runs.
    pub temp_dir: Option<Arc<TempDir>>,
    /// Where the intent survives.
    pub journal: Option<Journal>,
    /// Which pod this is.
    pub pod: api::Pod,
}

/// The manager is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: i32,
    /// Why, for the termination log.
    pub message: String,
}

/// The supervisor, before and while it runs.
pub struct Supervisor {
    pub(super) engine: Engine,
    pub(super) lifecycle: Lifecycle,
    pub(super) clock: Clock,
    pub(super) tree: Option<Tree>,
    /// Ours from before the first launch, and so not the engine's.
    pub(super) inherited: Inherited,
    /// Out-of-memory kills in our cgroup before the present run.
    pub(super) oom_kills: Option<u64>,
    pub(super) oom_counter: Option<oom::Counter>,
    pub(super) journal: Option<JournalWriter>,
    pub(super) readiness: Readiness,
    pub(super) publisher: Publisher,
    /// The config being prepared, or the one that the next spawn uses.
    pub(super) preparing: Option<Preparing>,
    pub(super) prepared: Option<Prepared>,
    pub(super) reply: Option<Reply>,
    pub(super) ended: Option<Ended>,
    signals: Signals,
    reaper: Reaper,
    config: Option<watch::Receiver<Arc<Observed>>>,
    calls: mpsc::Receiver<Call>,
    waiting: VecDeque<Call>,
    /// What only the start needed is still in memory.
    fresh: bool,
    /// Answered when the manager is to end.
    end: Option<oneshot::Sender<Ended>>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("lifecycle", &self.lifecycle).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Makes a supervisor, the handle others hold of it, and the news of its end.
    pub fn new(engine: Engine, signals: Signals) -> (Self, Handle, oneshot::Receiver<Ended>) {
        let clock = Clock::start();
        let lifecycle =
            Lifecycle::new(Policy { seed: random_number(), ..engine.policy.clone() }, clock.now());
        let config = engine.config.as_deref().map(ConfigWatch::subscribe);
        let readiness = Readiness::new(engine.probe.clone());
        let (publisher, status) =
            Publisher::new(engine.pod.clone(), clock.now(), &lifecycle, readiness.ready());
        let (sender, calls) = mpsc::channel(CALLS);
        let (end, ended) = oneshot::channel();
        let inherited = Inherited::find().unwrap_or_else(|why| {
            // Without an API nobody asks what is left: the manager ends with the leader.
            if engine.policy.api {
                tracing::warn!(
                    why,
                    "the engine's processes cannot be seen: one that outlives its leader cannot be \
                     ended, and no engine is started beside it"
                );
            }
            Inherited::default()
        });
        let supervisor = Self {
            engine,
            lifecycle,
            clock,
            tree: None,
            inherited,
            oom_kills: None,
            oom_counter: oom::Counter::find(),
            journal: None,
            readiness,
            publisher,
            preparing: None,
            prepared: None,
            reply: None,
            ended: None,
            signals,
            reaper: Reaper::new(),
            config,
            calls,
            waiting: VecDeque::new(),
            fresh: true,
            end: Some(end),
        };
        (supervisor, Handle::new(sender, status), ended)
    }

    /// Reads the journal, starts what it says and supervises until the manager is to end. Goes on
    /// answering requests after that, until it is dropped.
    pub async fn run(mut self) {
        let recovered = self.recover().await;
        // Deaths before the first SIGCHLD we could hear, as of an image's own init steps.
        self.reap();
        self.feed(Event::Boot(recovered));
        loop {
            self.publish();
            self.announce_end().await;
            self.turn().await;
        }
    }

    async fn recover(&mut self) -> Recovered {
        let Some(journal) = self.engine.journal.clone() else { return Recovered::Fresh };
        let (reader, pod) = (journal.clone(), self.engine.pod.uid.clone());
        let read = tokio::task::spawn_blocking(move || reader.recover(pod.as_deref()));
        let recovered = match timeout(JOURNAL_READ, read).await {
            Ok(Ok(recovered)) => recovered,
            Ok(Err(error)) => Recovered::Unreadable(format!("cannot read the journal: {error}")),
            Err(_) => Recovered::Unreadable(format!(
                "the state directory did not answer within {JOURNAL_READ:?}: repair the volume \
                 behind --state-dir"
            )),
        };
        let set_aside = matches!(recovered, Recovered::Unreadable(_));
        self.journal = Some(JournalWriter::spawn(journal, set_aside));
        recovered
    }

    /// Waits for one thing to happen and deals with it.
    async fn turn(&mut self) {
        let due = self.lifecycle.timers().min_by_key(|(_, due)| *due);
        tokio::select! {
            // Deaths and TERM before everything else; requests last.
            biased;
            signals = self.signals.recv() => self.signalled(&signals),
            written = next_written(&mut self.journal) => match written.result {
                Ok(()) => self.feed(Event::Persisted(written.version)),
                Err(error) => {
                    tracing::error!(
                        %error,
                        "the journal is not written: a stop would be forgotten by the next \
                         container, so stops are refused; free or repair the volume behind \
                         --state-dir"
                    );
                    self.feed(Event::PersistFailed { version: written.version, error });
                }
            },
            result = next_prepared(&mut self.preparing) => {
                self.preparing = None;
                if let Err(refusal) = &result {
                    tracing::error!(code = refusal.code.as_str(), "{}", refusal.message);
                }
                let event = result.map(|Ready { known, config }| {
                    self.prepared = config;
                    known
                });
                self.feed(Event::Prepared(event));
            }
            () = next_timer(self.clock, due.map(|(_, due)| due)) => {
                if let Some((timer, _)) = due {
                    self.feed(Event::Timer(timer));
                }
            }
            look = self.readiness.looked() => {
                if self.readiness.take(&look) {
                    self.feed(Event::Ready);
                }
                self.publisher.touch();
            }
            observed = next_observed(&mut self.config) => self.config_observed(&observed),
            Some(call) = self.calls.recv() => self.called(call),
        }
        while !self.lifecycle.is_deciding() {
            let Some(call) = self.waiting.pop_front() else { break };
            self.called(call);
        }
    }

    fn called(&mut self, call: Call) {
        match call {
            Call::Ping { reply } => drop(reply.send(())),
            Call::Probe { reply } => {
                let running = self.lifecycle.state() == api::State::Running;
                self.readiness.ask(running, reply);
            }
            Call::Stop { .. } | Call::Start { .. } if self.lifecycle.is_deciding() => {
                self.waiting.push_back(call);
            }
            Call::Stop { request, by, reply } => {
                self.reply = Some(reply);
                self.feed(Event::Stop { request, by });
            }
            Call::Start { request, by, reply } => {
                self.reply = Some(reply);
                self.feed(Event::Start { request, by });
            }
        }
    }

    fn signalled(&mut self, signals: &[i32]) {
        for &signal in signals {
            match signal {
                libc::SIGCHLD => self.reap(),
                libc::SIGTERM => {
                    tracing::info!("TERM: the engine is ended, then the manager");
                    self.feed(Event::Terminate);
                }
                other => self.feed(Event::Forward(other)),
            }
        }
    }

    fn reap(&mut self) {
        let leader = self.tree.as_ref().map(Tree::leader);
        let mut exited = None;
        for reaped in self.reaper.reap() {
            if Some(reaped.pid) == leader {
                exited = Some(reaped.status);
            }
        }
        if let Some(status) = exited {
            if let Some(tree) = &mut self.tree {
                tree.leader_reaped();
            }
            let status = match status {
                process::ExitStatus::Code(code) => lifecycle::ExitStatus::Code(code),
                process::ExitStatus::Signal(signal) => lifecycle::ExitStatus::Signal(signal),
            };
            let oom = self.was_out_of_memory(status);
            tracing::info!(?status, oom, "the engine's leader ended");
            self.feed(Event::EngineExited { status, oom });
        } else if self.lifecycle.is_ending()
            && !self.lifecycle.leader_is_alive()
            && let Some(event) = self.scan()
        {
            self.feed(event);
        }
    }

    fn config_observed(&mut self, observed: &Observed) {
        let moved = self
            .prepared
            .as_ref()
            .is_some_and(|prepared| observed.generation > prepared.generation);
        if moved {
            self.feed(Event::ConfigMoved);
        }
        self.publisher.touch();
    }

    /// Hands an event to the lifecycle and carries out what follows from it.
    pub(super) fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            tracing::debug!(?event, "event");
            for effect in self.lifecycle.step(self.clock.now(), event) {
                tracing::debug!(?effect, "effect");
                events.extend(self.perform(effect));
            }
        }
        match self.lifecycle.state() {
            api::State::Running if mem::take(&mut self.fresh) => process::release_startup_code(),
            api::State::Starting | api::State::Running => {}
            api::State::Stopped
            | api::State::Stopping
            | api::State::Killing
            | api::State::Backoff
            | api::State::Failed
            | api::State::Stuck => self.readiness.run_ended(),
        }
        self.publisher.touch();
    }

    pub(super) fn publish(&mut self) {
        let observed = self.config.as_ref().map(|config| config.borrow().clone());
        self.publisher.publish(&self.lifecycle, observed.as_deref(), self.readiness.ready());
    }

    /// Tells the rest of the manager that it is to end, once the journal had its chance.
    async fn announce_end(&mut self) {
        let Some(ended) = self.ended.take() else { return };
        let Some(end) = self.end.take() else { return };
        if let Some(journal) = &mut self.journal {
            let flushed = timeout(JOURNAL_FLUSH, async {
                while journal.is_busy() {
                    journal.written().await;
                }
            });
            if flushed.await.is_err() {
                tracing::error!("the last journal entry did not reach the disk");
            }
        }
        // Nobody listens when the manager is torn down already.
        let _ = end.send(ended);
    }
}

async fn next_written(journal: &mut Option<JournalWriter>) -> super::journal_writer::Written {
    match journal {
        Some(journal) => journal.written().await,
        None => pending().await,
    }
}

async fn next_prepared(preparing: &mut Option<Preparing>) -> Result<Ready, Refusal> {
    match preparing {
        Some(preparing) => preparing.await,
        None => pending().await,
    }
}

async fn next_timer(clock: Clock, due: Option<lifecycle::Millis>) {
    match due {
        Some(due) => sleep_until(clock.instant(due)).await,
        None => pending().await,
    }
}

async fn next_observed(config: &mut Option<watch::Receiver<Arc<Observed>>>) -> Arc<Observed> {
    if let Some(receiver) = config {
        if receiver.changed().await.is_ok() {
            return receiver.borrow_and_update().clone();
        }
        // The watcher ended; what it saw last stays.
        *config = None;
    }
    pending().await
}
