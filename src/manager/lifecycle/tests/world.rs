//! A simulated environment of a lifecycle: a disk, a config, an engine and callers. Effects stay
//! outstanding until the test, or the model, carries them out. A forbidden effect is recorded in
//! `broken`.

use crate::lifecycle::{
    Checked, Effect, Event, ExitStatus, Intent, KeepAs, Lifecycle, Millis, Phase, Policy, Prepared,
    Recovered, Request, Timer, Tree,
};
use stayput_api::{
    Accepted, Code, ConfigChoice, Desired, DrainRequest, Exit, Process, Refusal, Run,
};

/// Checksum of what is mounted.
pub(super) const MOUNTED: &str = "sha256:mounted";
/// Checksum of something else.
pub(super) const OTHER: &str = "sha256:other";

/// A process of the engine, as its parent sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Life {
    #[default]
    Gone,
    Alive,
    /// Sent a signal that ends it, unless it ignores signals.
    Signalled,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Engine {
    pub(super) leader: Life,
    pub(super) server: Life,
    pub(super) straggler: Life,
}

impl Engine {
    pub(super) fn is_gone(self) -> bool {
        self == Self::default()
    }

    fn tree(self) -> Tree {
        let process = |life, pid| match life {
            Life::Gone => vec![],
            Life::Alive | Life::Signalled => vec![Process { pid, command: "java".to_owned() }],
        };
        Tree {
            jvm: true,
            server: process(self.server, 2),
            stragglers: process(self.straggler, 3),
            strangers: vec![],
            unseen: None,
        }
    }
}

/// The content of a version of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Saved {
    pub(super) intent: Intent,
    pub(super) last_exit: Option<Exit>,
    pub(super) run: Option<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) lifecycle: Lifecycle,
    pub(super) now: Millis,
    pub(super) disk: Option<Saved>,
    /// Versions that were given to the writer, in order, and that may or may not reach the disk.
    pub(super) writing: Vec<(u64, Saved)>,
    pub(super) preparing: Option<(ConfigChoice, Option<String>)>,
    /// The kept generation that is to be prepared instead.
    pub(super) pinned: Option<String>,
    pub(super) spawning: Option<Prepared>,
    pub(super) scan: bool,
    /// The journal is still being read; what is written is written after that.
    pub(super) reading: bool,
    /// The program is asked, the server closes, the program is executed.
    pub(super) checking: bool,
    pub(super) closing: bool,
    pub(super) executing: bool,
    /// The request of an upgrade has no answer yet.
    pub(super) upgrade_is_open: bool,
    pub(super) engine: Engine,
    /// The request that has no answer yet.
    pub(super) open: Option<Request>,
    pub(super) replies: Vec<Result<Accepted, Refusal>>,
    pub(super) exit: Option<i32>,
    /// Effects since the test last cleared them.
    pub(super) effects: Vec<Effect>,
    /// The first forbidden effect.
    pub(super) broken: Option<&'static str>,
}

impl World {
    /// A manager that has not booted.
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            lifecycle: Lifecycle::new(policy, 0),
            now: 0,
            disk: None,
            writing: vec![],
            preparing: None,
            pinned: None,
            spawning: None,
            scan: false,
            reading: false,
            checking: false,
            closing: false,
            executing: false,
            upgrade_is_open: false,
            engine: Engine::default(),
            open: None,
            replies: vec![],
            exit: None,
            effects: vec![],
            broken: None,
        }
    }

    /// The manager starts and reads what is on the disk.
    pub(super) fn boot(&mut self) {
        self.happens(Event::Boot(self.recovered()));
    }

    /// The manager starts, and the disk does not answer in time.
    pub(super) fn boots_without_an_answer(&mut self) {
        self.reading = true;
        self.happens(Event::Boot(Recovered::NotYet("no answer".to_owned())));
    }

    /// The disk that did not answer in time does so now.
    pub(super) fn journal_is_read(&mut self) {
        self.reading = false;
        self.happens(Event::JournalRead(self.recovered()));
    }

    fn recovered(&self) -> Recovered {
        match &self.disk {
            None => Recovered::Fresh,
            Some(Saved { intent, last_exit, run }) => Recovered::Journal {
                intent: Box::new(intent.clone()),
                last_exit: last_exit.clone(),
                run: run.clone().map(Box::new),
            },
        }
    }

    /// The container ends, for any reason, and comes back: only the disk is kept.
    pub(super) fn comes_back(&mut self) {
        let mut next = Self::new(self.lifecycle.policy().clone());
        next.disk = self.disk.take();
        next.now = self.now;
        next.effects = std::mem::take(&mut self.effects);
        next.replies = std::mem::take(&mut self.replies);
        next.broken = self.broken;
        *self = next;
        self.boot();
    }

    /// Passes an event in.
    pub(super) fn happens(&mut self, event: Event) {
        let effects = self.lifecycle.step(self.now, event);
        for effect in effects {
            self.takes(effect);
        }
    }

    /// Passes a request in, as the supervisor does.
    pub(super) fn asks(&mut self, request: Request) {
        self.asks_as("test", request);
    }

    /// As [`Self::asks`], as this caller.
    pub(super) fn asks_as(&mut self, caller: &str, request: Request) {
        self.must(!self.lifecycle.is_deciding(), "a request was passed in during a decision");
        self.open = Some(request.clone());
        let by = caller.to_owned();
        self.happens(match request {
            Request::Stop(request) => Event::Stop { request, by },
            Request::Start(request) => Event::Start { request, by },
        });
    }

    /// Asks for a drain ahead of the stop with this sequence: it is answered at once, and nothing
    /// else is done.
    pub(super) fn drains_ahead(&mut self, sequence: u64) -> Result<Accepted, Refusal> {
        let request = DrainRequest { sequence: Some(sequence), pod: None };
        let mut effects = self.lifecycle.step(self.now, Event::Drain(request));
        match (effects.pop(), effects.is_empty()) {
            (Some(Effect::Reply(reply)), true) => reply,
            _ => panic!("a drain ahead of a stop has one effect, its answer: {effects:?}"),
        }
    }

    pub(super) fn asks_for_upgrade(&mut self) {
        self.must(!self.lifecycle.is_deciding(), "a request was passed in during a decision");
        self.upgrade_is_open = true;
        self.happens(Event::Upgrade);
    }

    pub(super) fn program_checked(&mut self, result: Result<Checked, String>) {
        self.checking = false;
        self.happens(Event::ProgramChecked(result));
    }

    pub(super) fn server_closed(&mut self) {
        self.closing = false;
        self.happens(Event::ServerClosed);
    }

    pub(super) fn not_executed(&mut self) {
        self.executing = false;
        self.happens(Event::NotExecuted("no memory".to_owned()));
    }

    /// The program is executed and takes over: disk and engine stay.
    pub(super) fn takes_over(&mut self) {
        let taken = Box::new(self.lifecycle.hand_over());
        self.executing = false;
        self.scan = false;
        self.lifecycle = Lifecycle::new(self.lifecycle.policy().clone(), self.now);
        self.happens(Event::Boot(Recovered::TakenOver(taken)));
    }

    /// The result of preparing the config that is being prepared.
    pub(super) fn verify(&self) -> Result<Prepared, Refusal> {
        let Some((choice, expected)) = &self.preparing else {
            return Err(Refusal::new(Code::ConfigUnknown, "nothing to prepare"));
        };
        if expected.as_deref().is_none_or(|expected| expected == MOUNTED) {
            let used = self.pinned.clone().unwrap_or_else(|| MOUNTED.to_owned());
            Ok(Prepared { checksum: Some(used), choice: *choice })
        } else {
            Err(Refusal::new(Code::ChecksumMismatch, "another config is mounted"))
        }
    }

    pub(super) fn prepared(&mut self, result: Result<Prepared, Refusal>) {
        self.preparing = None;
        self.happens(Event::Prepared(result));
    }

    /// The oldest outstanding version is written, or its write fails.
    pub(super) fn write_ends(&mut self, well: bool) {
        let (version, saved) = self.writing.remove(0);
        if well {
            self.disk = Some(saved);
            self.happens(Event::Persisted(version));
        } else {
            self.happens(Event::PersistFailed { version, error: "no space".to_owned() });
        }
    }

    pub(super) fn spawned(&mut self) {
        self.spawning = None;
        self.engine.leader = Life::Alive;
        self.happens(Event::Spawned { id: "run".to_owned(), pid: 1, environment: None });
    }

    pub(super) fn spawn_fails(&mut self) {
        self.spawning = None;
        let message = "no such command".to_owned();
        self.happens(Event::SpawnFailed { code: 127, shortage: false, message });
    }

    /// The pids of the container are used up.
    pub(super) fn spawn_lacks(&mut self) {
        self.spawning = None;
        let message = "no process can be made".to_owned();
        self.happens(Event::SpawnFailed { code: 126, shortage: true, message });
    }

    pub(super) fn config_outdated(&mut self) {
        self.spawning = None;
        self.happens(Event::ConfigOutdated);
    }

    /// The leader ends and leaves other processes behind; a launcher passes its signal on to the
    /// server.
    pub(super) fn leader_ends(
        &mut self,
        status: ExitStatus,
        oom: bool,
        server: bool,
        straggler: bool,
    ) {
        let leader = self.engine.leader;
        self.engine = Engine {
            leader: Life::Gone,
            server: if server { leader } else { Life::Gone },
            straggler: if straggler { Life::Alive } else { Life::Gone },
        };
        self.happens(Event::EngineExited { status, oom });
    }

    pub(super) fn server_ends(&mut self) {
        self.engine.server = Life::Gone;
        self.scan |= self.lifecycle.is_ending();
    }

    pub(super) fn straggler_ends(&mut self) {
        self.engine.straggler = Life::Gone;
        self.scan |= self.lifecycle.is_ending();
    }

    pub(super) fn scanned(&mut self) {
        self.scan = false;
        self.happens(Event::Tree(self.engine.tree()));
    }

    /// Time passes until this timer is due.
    pub(super) fn waits_for(&mut self, timer: Timer) {
        let due = self.due(timer);
        self.now = self.now.max(due.unwrap_or_else(|| panic!("{timer:?} does not run")));
        self.happens(Event::Timer(timer));
    }

    pub(super) fn due(&self, timer: Timer) -> Option<Millis> {
        self.lifecycle.timers().find(|(running, _)| *running == timer).map(|(_, due)| due)
    }

    fn must(&mut self, holds: bool, complaint: &'static str) {
        if !holds {
            self.broken.get_or_insert(complaint);
        }
    }

    fn takes(&mut self, effect: Effect) {
        let leader = self.engine.leader;
        match &effect {
            Effect::Prepare { choice, expected, pinned } => {
                let requested = self.open.is_some() || expected.is_some();
                let pins = self.lifecycle.policy().pin_config && !requested;
                let told = self.lifecycle.intent().checksum.clone().filter(|_| pins);
                self.must(*pinned == told, "a config that the engine was not told to run");
                self.pinned.clone_from(pinned);
                let terminating = self.lifecycle.is_terminating();
                self.must(self.preparing.is_none(), "two configs are prepared at once");
                self.must(!terminating, "a config is prepared after TERM");
                self.preparing = Some((*choice, expected.clone()));
            }
            Effect::Persist(version) => {
                let saved = Saved {
                    intent: self.lifecycle.journaled_intent().clone(),
                    last_exit: self.lifecycle.last_exit().cloned(),
                    run: self.lifecycle.run(),
                };
                // One write at a time; of the versions that wait, only the last one counts.
                self.writing.truncate(1);
                self.writing.push((*version, saved));
            }
            Effect::Spawn(prepared) => self.spawn_is_wanted(prepared.clone()),
            Effect::SignalLeader(signal) => {
                self.must(leader != Life::Gone, "a leader that is gone was signalled");
                if *signal == self.lifecycle.policy().stop_signal {
                    self.engine.leader = Life::Signalled;
                }
            }
            Effect::SignalServer(_) => signal(&mut self.engine.server),
            Effect::TermStragglers => signal(&mut self.engine.straggler),
            Effect::DumpThreads => {}
            Effect::Keep(kept) => {
                let ready = self.lifecycle.phase() == Phase::Running;
                self.must(
                    ready || *kept == KeepAs::Pinned,
                    "the config of an engine that is not ready counts as good",
                );
            }
            Effect::KillTree => {
                signal(&mut self.engine.leader);
                signal(&mut self.engine.server);
                signal(&mut self.engine.straggler);
            }
            Effect::ScanTree => self.scan = true,
            Effect::CheckProgram => self.checking = true,
            Effect::EndCheck => self.checking = false,
            Effect::CloseServer => {
                self.must(!self.upgrade_is_open, "the server closes before it has answered");
                self.closing = true;
            }
            Effect::Execute => {
                let at_rest = self.open.is_none() && self.writing.is_empty();
                self.must(at_rest, "a program takes over in the middle of a request or a write");
                let gone = self.engine.is_gone() == self.lifecycle.run().is_none();
                self.must(gone, "a program takes over an engine that is starting or ending");
                self.must(!self.lifecycle.is_terminating(), "a program takes over after TERM");
                self.executing = true;
            }
            Effect::OpenServer(_) => self.closing = false,
            Effect::Reply(reply) if self.upgrade_is_open => {
                self.upgrade_is_open = false;
                self.replies.push(reply.clone());
            }
            Effect::Reply(reply) => {
                let open = self.open.take();
                self.must(open.is_some(), "an answer without a request");
                if let Some(request) = open {
                    self.answer_is_true(&request, reply);
                }
                self.replies.push(reply.clone());
            }
            Effect::Exit(code) => {
                self.must(self.open.is_none(), "the manager ends before it has answered");
                self.must(self.spawning.is_none(), "the manager ends while it spawns");
                self.must(
                    self.engine.is_gone()
                        || self.lifecycle.phase() == Phase::Stuck
                        || !self.lifecycle.policy().api,
                    "the manager ends while an engine runs",
                );
                self.exit = Some(*code);
            }
        }
        self.effects.push(effect);
    }

    fn spawn_is_wanted(&mut self, prepared: Prepared) {
        let intent = self.lifecycle.intent();
        let wanted = intent.desired == Desired::Running && intent.held.is_none();
        self.must(wanted, "a spawn that was not requested");
        self.must(self.engine.is_gone(), "a spawn while processes of an earlier run exist");
        self.must(self.spawning.is_none(), "two spawns at once");
        self.must(!self.lifecycle.is_terminating(), "a spawn after TERM");
        self.spawning = Some(prepared);
    }

    /// An accepted stop must survive a crash right after the answer.
    fn answer_is_true(&mut self, request: &Request, reply: &Result<Accepted, Refusal>) {
        let (Request::Stop(_), Ok(Accepted { done, .. })) = (request, reply) else {
            return;
        };
        let kept = self.disk.as_ref().is_some_and(|saved| {
            saved.intent.desired == Desired::Stopped && saved.intent.held.is_none()
        });
        self.must(kept, "a stop was accepted that is not on the disk");
        let gone = self.engine.is_gone() && self.lifecycle.phase() == Phase::Stopped;
        self.must(!done || gone, "a stop was reported done while an engine runs");
    }
}

fn signal(life: &mut Life) {
    if *life == Life::Alive {
        *life = Life::Signalled;
    }
}
