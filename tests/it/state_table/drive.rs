//! Brings a lifecycle into each phase by real events, and reports what it does next.

use stayput_api::{Accepted, Code, Process, Refusal, StartRequest, StopRequest};
use stayput_manager::lifecycle::{
    Effect, Event, ExitStatus, KeepAs, Lifecycle, OnExit, Phase, Policy, Prepared, Recovered,
    Timer, Tree,
};

/// Checksum of the mounted config and of the running one.
pub(crate) const MOUNTED: &str = "sha256:mounted";

/// Which processes are left when the leader ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Server,
    Straggler,
}

impl Left {
    fn tree(self) -> Tree {
        let process = vec![Process { pid: 2, command: "java".to_owned() }];
        match self {
            Self::Nothing => Tree::default(),
            Self::Server => Tree { jvm: true, server: process, ..Tree::default() },
            Self::Straggler => Tree { stragglers: process, ..Tree::default() },
        }
    }
}

/// A lifecycle in an environment in which nothing fails.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub(crate) lifecycle: Lifecycle,
    now: u64,
    tree: Tree,
    pub(crate) reply: Option<Result<Accepted, Refusal>>,
    /// What it did, in words.
    pub(crate) actions: Vec<String>,
}

impl Drive {
    fn boot(policy: Policy) -> Self {
        let tree = Tree { jvm: true, ..Tree::default() };
        let lifecycle = Lifecycle::new(policy, 0);
        let mut drive = Self { lifecycle, now: 0, tree, reply: None, actions: vec![] };
        drive.event(Event::Boot(Recovered::Fresh));
        drive
    }

    /// The events that lead to a phase, if there are any with this `on_exit`.
    pub(crate) fn into(phase: Phase, on_exit: OnExit) -> Option<Self> {
        let drain = if phase == Phase::Draining { 5_000 } else { 0 };
        let mut drive =
            Self::boot(Policy { on_exit, drain, keep_last_good: true, ..Policy::default() });
        let ready = |drive: &mut Self| drive.event(Event::Ready);
        match phase {
            Phase::Starting => {}
            Phase::Running => ready(&mut drive),
            Phase::Draining | Phase::Signalled => {
                ready(&mut drive);
                drive.stop();
            }
            Phase::Stopped => {
                ready(&mut drive);
                drive.stop();
                drive.leader_ends(143, Left::Nothing);
            }
            Phase::Lingering => {
                ready(&mut drive);
                drive.stop();
                drive.leader_ends(143, Left::Server);
            }
            Phase::Straggling => {
                ready(&mut drive);
                drive.stop();
                drive.leader_ends(143, Left::Straggler);
            }
            Phase::Failed => {
                drive = Self::into(Phase::Stopped, on_exit)?;
                drive.start(StartRequest::default());
                drive.leader_ends(78, Left::Nothing);
            }
            Phase::Backoff if on_exit == OnExit::Restart => {
                ready(&mut drive);
                drive.leader_ends(1, Left::Nothing);
            }
            Phase::Backoff => return None,
            Phase::Dumping => {
                drive = Self::into(Phase::Signalled, on_exit)?;
                drive.fires(Timer::Grace);
            }
            Phase::Killing => {
                drive = Self::into(Phase::Dumping, on_exit)?;
                drive.fires(Timer::Dump);
            }
            Phase::Stuck => {
                drive = Self::into(Phase::Killing, on_exit)?;
                drive.fires(Timer::Kill);
            }
        }
        assert_eq!(drive.lifecycle.phase(), phase);
        drive.reply = None;
        drive.actions.clear();
        Some(drive)
    }

    pub(crate) fn stop(&mut self) {
        self.stop_with(StopRequest::default());
    }

    pub(crate) fn stop_with(&mut self, request: StopRequest) {
        self.event(Event::Stop { request, by: "somebody".to_owned() });
    }

    pub(crate) fn start(&mut self, request: StartRequest) {
        self.event(Event::Start { request, by: "somebody".to_owned() });
    }

    pub(crate) fn leader_ends(&mut self, code: i32, left: Left) {
        self.tree = left.tree();
        self.event(Event::EngineExited { status: ExitStatus::Code(code), oom: false });
    }

    pub(crate) fn last_process_ends(&mut self) {
        self.tree = Tree::default();
        self.event(Event::Tree(Tree::default()));
    }

    pub(crate) fn fires(&mut self, timer: Timer) {
        self.now = self.now.max(self.due(timer).expect("the timer runs"));
        self.event(Event::Timer(timer));
    }

    pub(crate) fn due(&self, timer: Timer) -> Option<u64> {
        self.lifecycle.timers().find(|(running, _)| *running == timer).map(|(_, due)| due)
    }

    /// The container is killed, and a new one reads the journal.
    pub(crate) fn comes_back(&mut self) {
        let recovered = Recovered::Journal {
            intent: Box::new(self.lifecycle.journaled_intent().clone()),
            last_exit: self.lifecycle.last_exit().cloned(),
            run: self.lifecycle.run().map(Box::new),
        };
        self.lifecycle = Lifecycle::new(self.lifecycle.policy().clone(), self.now);
        self.event(Event::Boot(recovered));
    }

    /// Passes an event in and answers the effects, always with success.
    pub(crate) fn event(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in self.lifecycle.step(self.now, event) {
                events.extend(self.effect(effect));
            }
        }
    }

    fn effect(&mut self, effect: Effect) -> Option<Event> {
        let action = match effect {
            Effect::Prepare { choice, expected, pinned: _ } => {
                let fits = expected.is_none_or(|expected| expected == MOUNTED);
                let prepared = Prepared { checksum: Some(MOUNTED.to_owned()), choice };
                let refusal = Refusal::new(Code::ChecksumMismatch, "another config is mounted");
                return Some(Event::Prepared(if fits { Ok(prepared) } else { Err(refusal) }));
            }
            Effect::Persist(version) => return Some(Event::Persisted(version)),
            Effect::ScanTree => return Some(Event::Tree(self.tree.clone())),
            Effect::Reply(reply) => {
                self.reply = Some(reply);
                return None;
            }
            Effect::Spawn(_) => {
                self.actions.push("the engine is spawned".to_owned());
                return Some(Event::Spawned { id: "run".to_owned(), pid: 1, environment: None });
            }
            Effect::SignalLeader(_) => "stop signal to the leader".to_owned(),
            Effect::SignalServer(_) => "stop signal to the server".to_owned(),
            Effect::TermStragglers => "TERM to the stragglers".to_owned(),
            Effect::DumpThreads => "QUIT to the server, which prints its threads".to_owned(),
            Effect::KillTree => "KILL to the whole tree".to_owned(),
            Effect::Keep(KeepAs::Pinned) => "the config is kept for a way back".to_owned(),
            Effect::Keep(KeepAs::Candidate) => "the config is kept until it is proved".to_owned(),
            Effect::Keep(KeepAs::LastGood) => "the config becomes the last good one".to_owned(),
            // The tables have no upgrade.
            Effect::CheckProgram
            | Effect::EndCheck
            | Effect::CloseServer
            | Effect::Execute
            | Effect::OpenServer(_) => return None,
            Effect::Exit(code) => format!("the manager ends with {code}"),
        };
        self.actions.push(action);
        None
    }
}
