//! A manager and the process it runs: the shipped state machine, with a simulated kernel, disk and
//! engine. It can be frozen, as by SIGSTOP: then requests wait.

use std::collections::BTreeSet;

use crate::{LastExit, LastRequest, Manager, Run};
use stayput_api::checksum::ContentDigest;
use stayput_api::{Code, ConfigChoice, DrainRequest, Refusal, StartRequest, StopRequest};
use stayput_manager::lifecycle::{
    Effect, Event, ExitStatus, KeepAs, Lifecycle, Policy, Prepared, Recovered, Tree,
};

/// How long things take on this node, in milliseconds, and how its engine fails.
#[derive(Debug, Clone)]
pub(crate) struct Habits {
    /// From the stop signal to the end of the process.
    pub(crate) stop: u64,
    /// From the start of the process to ready.
    pub(crate) start: u64,
    /// Checksums of configs on which it ends soon after its start.
    pub(crate) refuses: BTreeSet<String>,
    /// It ends soon after its start, on every config.
    pub(crate) fails: bool,
    /// Values of a variable with which it ends soon after its start.
    pub(crate) breaks: BTreeSet<String>,
    /// Checksums of configs on which it joins its cluster and never gets ready.
    pub(crate) never_ready: BTreeSet<String>,
    /// Checksums of configs on which it runs and finds no other node.
    pub(crate) never_joins: BTreeSet<String>,
    /// It does not react to signals, not even to SIGKILL.
    pub(crate) immortal: bool,
}

/// A request to the manager.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Stop(StopRequest),
    Start(StartRequest),
    Drain(DrainRequest),
}

/// A process of the engine.
#[derive(Debug, Clone)]
struct Process {
    run: String,
    checksum: Option<String>,
    up_at: u64,
    dies_at: Option<u64>,
    was_reported_up: bool,
    /// It answers nobody, and reacts to no signal but SIGKILL.
    hangs: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Machine {
    life: Lifecycle,
    pub(crate) habits: Habits,
    pub(crate) mounted: Option<String>,
    /// The variable of its container.
    pub(crate) variable: String,
    /// The file with the variables for its engine.
    pub(crate) environment: String,
    pub(crate) last_good: Option<String>,
    pub(crate) frozen: bool,
    pub(crate) unreachable: bool,
    /// Writes to its disk fail.
    pub(crate) read_only: bool,
    process: Option<Process>,
    /// Requests that arrived while it was frozen.
    queue: Vec<(Asked, String)>,
    runs: u64,
    saved: Option<(
        stayput_manager::lifecycle::Intent,
        Option<stayput_api::Exit>,
        Option<stayput_api::Run>,
    )>,
    exited: bool,
}

/// What the manager decided about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Accepted for the first time.
    Accepted,
    /// Accepted before.
    Again,
    Refused(Code),
    /// It waits, because the manager is frozen or not running.
    Waits,
    /// It did not arrive.
    Lost,
}

const FAILS_AFTER: u64 = 3_000;

fn digest(file: &str) -> String {
    ContentDigest::of(file.as_bytes()).to_string()
}

impl Machine {
    /// A manager in a new pod, whose engine has been running on `config` for a while.
    pub(crate) fn running(uid: &str, config: &str, now: u64) -> Self {
        let policy = Policy {
            pod: Some(uid.to_owned()),
            probe: true,
            staged: true,
            keep_last_good: true,
            ..Policy::default()
        };
        let mut machine = Self {
            life: Lifecycle::new(policy, now),
            habits: Habits {
                stop: 5_000,
                start: 20_000,
                refuses: BTreeSet::new(),
                fails: false,
                breaks: BTreeSet::new(),
                never_ready: BTreeSet::new(),
                never_joins: BTreeSet::new(),
                immortal: false,
            },
            mounted: Some(config.to_owned()),
            variable: "a".to_owned(),
            environment: String::new(),
            last_good: None,
            frozen: false,
            unreachable: false,
            read_only: false,
            process: None,
            queue: Vec::new(),
            runs: 0,
            saved: None,
            exited: false,
        };
        machine.happens(now, Event::Boot(Recovered::Fresh));
        if let Some(process) = &mut machine.process {
            process.up_at = now;
        }
        machine.wake(now);
        machine
    }

    /// Its engine has just been started.
    pub(crate) fn boots_now(&mut self, now: u64) {
        self.saved = None;
        self.comes_back(now);
    }

    /// The container is restarted; the engine's processes end with it.
    pub(crate) fn comes_back(&mut self, now: u64) {
        self.process = None;
        self.queue.clear();
        self.frozen = false;
        self.exited = false;
        self.life = Lifecycle::new(self.life.policy().clone(), now);
        let recovered = match self.saved.clone() {
            None => Recovered::Fresh,
            Some((intent, last_exit, run)) => {
                Recovered::Journal { intent: Box::new(intent), last_exit, run: run.map(Box::new) }
            }
        };
        self.happens(now, Event::Boot(recovered));
    }

    /// The container is gone, and with it all of its processes.
    pub(crate) fn container_ends(&mut self) {
        self.process = None;
        self.queue.clear();
        self.frozen = false;
        self.exited = false;
    }

    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Continues, first with the requests that waited.
    pub(crate) fn thaw(&mut self, now: u64) -> Vec<(Asked, String, Verdict)> {
        self.frozen = false;
        let queue = std::mem::take(&mut self.queue);
        self.wake(now);
        let judge = |(asked, by): (Asked, String)| {
            let verdict = self.asks(now, asked.clone(), &by);
            (asked, by, verdict)
        };
        queue.into_iter().map(judge).collect()
    }

    /// A process that did not end on SIGKILL ends now.
    pub(crate) fn lets_go(&mut self, now: u64) {
        self.habits.immortal = false;
        if let Some(process) = &mut self.process {
            process.dies_at = Some(now);
        }
        self.wake(now);
    }

    /// The engine ends by itself.
    pub(crate) fn engine_dies(&mut self, now: u64) {
        if let Some(process) = &mut self.process {
            process.dies_at = Some(now);
        }
        self.wake(now);
    }

    /// The engine hangs, if it is up, or answers again.
    pub(crate) fn hangs(&mut self, now: u64, hangs: bool) {
        let is_up = self.up(now).is_some();
        if let Some(process) = self.process.as_mut().filter(|_| is_up) {
            process.hangs = hangs;
        }
    }

    /// The engine is up, and hangs.
    pub(crate) fn is_silent(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.hangs)
    }

    pub(crate) fn asks(&mut self, now: u64, asked: Asked, by: &str) -> Verdict {
        if self.unreachable {
            return Verdict::Lost;
        }
        if self.frozen {
            self.queue.push((asked, by.to_owned()));
            return Verdict::Waits;
        }
        let before = self.life.intent().fencing.clone();
        let by = by.to_owned();
        let reply = match asked {
            Asked::Stop(request) => self.happens(now, Event::Stop { request, by }),
            Asked::Start(request) => self.happens(now, Event::Start { request, by }),
            Asked::Drain(request) => self.happens(now, Event::Drain(request)),
        };
        match reply {
            Some(Ok(_)) if self.life.intent().fencing.sequence > before.sequence => {
                Verdict::Accepted
            }
            Some(Ok(_)) => Verdict::Again,
            Some(Err(refusal)) => Verdict::Refused(refusal.code),
            None => Verdict::Lost,
        }
    }

    /// When the next event happens by itself.
    pub(crate) fn next(&self) -> Option<u64> {
        let process = self.process.as_ref();
        let dies = process.and_then(|process| process.dies_at);
        if self.frozen {
            return None;
        }
        let gets_up = |process: &&Process| !process.was_reported_up && self.gets_ready();
        let up = process.filter(gets_up).map(|process| process.up_at);
        let timers = self.life.timers().map(|(_, due)| due).min();
        [dies, up, timers].into_iter().flatten().min()
    }

    /// Handles the events that are due.
    pub(crate) fn wake(&mut self, now: u64) {
        while !self.frozen {
            let Some(event) = self.due(now) else { return };
            self.happens(now, event);
        }
    }

    fn due(&mut self, now: u64) -> Option<Event> {
        if self.process.as_ref().is_some_and(|process| process.dies_at.is_some_and(|at| at <= now))
        {
            let process = self.process.take()?;
            let clean = self.life.state() == stayput_api::State::Stopping;
            let status = if clean { ExitStatus::Code(143) } else { ExitStatus::Code(78) };
            drop(process);
            return Some(Event::EngineExited { status, oom: false });
        }
        let gets_ready = self.gets_ready();
        if let Some(process) = self.process.as_mut().filter(|_| gets_ready)
            && !process.was_reported_up
            && process.up_at <= now
        {
            process.was_reported_up = true;
            return Some(Event::Ready);
        }
        let due = self.life.timers().filter(|(_, at)| *at <= now).min_by_key(|(_, at)| *at);
        due.map(|(timer, _)| Event::Timer(timer))
    }

    fn happens(&mut self, now: u64, event: Event) -> Option<Result<(), Refusal>> {
        let mut todo = std::collections::VecDeque::from(self.life.step(now, event));
        let mut reply = None;
        while let Some(effect) = todo.pop_front() {
            let next = match effect {
                Effect::Reply(answer) => {
                    reply = Some(answer.map(|_| ()));
                    None
                }
                other => self.carry_out(now, other),
            };
            // An event that an effect causes is handled before the effects after it.
            if let Some(event) = next {
                for effect in self.life.step(now, event).into_iter().rev() {
                    todo.push_front(effect);
                }
            }
        }
        reply
    }

    fn carry_out(&mut self, now: u64, effect: Effect) -> Option<Event> {
        match effect {
            // This pod pins no config.
            Effect::Prepare { choice, expected, pinned: _ } => {
                Some(Event::Prepared(self.prepare(choice, expected)))
            }
            Effect::Persist(version) if self.read_only => {
                Some(Event::PersistFailed { version, error: "the file system is read-only".into() })
            }
            Effect::Persist(version) => {
                let intent = self.life.journaled_intent().clone();
                self.saved = Some((intent, self.life.last_exit().cloned(), self.life.run()));
                Some(Event::Persisted(version))
            }
            Effect::Spawn(prepared) => Some(self.spawn(now, prepared)),
            Effect::SignalLeader(_) | Effect::SignalServer(_) | Effect::TermStragglers
                if self.process.as_ref().is_some_and(|process| process.hangs) =>
            {
                None
            }
            Effect::SignalLeader(_) | Effect::SignalServer(_) | Effect::TermStragglers => {
                let stop = self.habits.stop;
                self.dies(now + stop);
                None
            }
            Effect::KillTree => {
                self.dies(now);
                None
            }
            Effect::ScanTree => {
                let mut tree = Tree::default();
                if let Some(process) = &self.process {
                    let command = format!("engine of run {}", process.run);
                    tree.stragglers.push(stayput_api::Process { pid: 1, command });
                }
                Some(Event::Tree(tree))
            }
            Effect::Keep(KeepAs::Pinned) => None,
            Effect::Keep(KeepAs::Candidate) if self.last_good.is_some() => None,
            Effect::Keep(kept @ (KeepAs::Candidate | KeepAs::LastGood)) => {
                self.last_good = self.process.as_ref().and_then(|process| process.checksum.clone());
                (kept == KeepAs::LastGood).then_some(Event::Kept)
            }
            Effect::Exit(_) => {
                self.exited = true;
                None
            }
            Effect::DumpThreads | Effect::Reply(_) => None,
            // Nobody upgrades a manager here.
            Effect::CheckProgram
            | Effect::EndCheck
            | Effect::CloseServer
            | Effect::Execute
            | Effect::OpenServer(_) => None,
        }
    }

    fn prepare(&self, choice: ConfigChoice, expected: Option<String>) -> Result<Prepared, Refusal> {
        let checksum = match choice {
            ConfigChoice::Mounted => self.mounted.clone(),
            ConfigChoice::LastGood if self.last_good.is_none() => {
                return Err(Refusal::new(Code::NoLastGood, "no config was ever good"));
            }
            ConfigChoice::LastGood => self.last_good.clone(),
        };
        if expected.is_some() && expected != checksum {
            return Err(Refusal::new(Code::ChecksumMismatch, "another config is mounted"));
        }
        Ok(Prepared { checksum, choice })
    }

    fn spawn(&mut self, now: u64, prepared: Prepared) -> Event {
        self.runs += 1;
        let uid = self.life.policy().pod.clone().unwrap_or_default();
        let id = format!("{uid}-run{}", self.runs);
        let is_variable = |value: &String| match self.environment.as_str() {
            "" => *value == self.variable,
            given => given.contains(&format!(":\"{value}\"")),
        };
        let refused = self.habits.fails
            || self.habits.breaks.iter().any(is_variable)
            || prepared.checksum.as_ref().is_some_and(|sum| self.habits.refuses.contains(sum));
        self.process = Some(Process {
            run: id.clone(),
            checksum: prepared.checksum,
            up_at: now + if refused { u64::MAX / 2 } else { self.habits.start },
            dies_at: refused.then(|| now + FAILS_AFTER),
            was_reported_up: false,
            hangs: false,
        });
        Event::Spawned { id, pid: 1, environment: Some(digest(&self.environment)) }
    }

    fn dies(&mut self, at: u64) {
        let immortal = self.habits.immortal;
        if let Some(process) = self.process.as_mut().filter(|_| !immortal) {
            process.dies_at = Some(process.dies_at.unwrap_or(at).min(at));
        }
    }

    /// The container has ended with the manager and must be started again.
    pub(crate) fn has_exited(&self) -> bool {
        self.exited
    }

    /// Id of the process that answers, if one does. It also answers while its manager is frozen.
    pub(crate) fn up(&self, now: u64) -> Option<&str> {
        let process = self.process.as_ref()?;
        let alive = process.dies_at.is_none_or(|at| at > now);
        (alive && process.up_at <= now).then_some(process.run.as_str())
    }

    /// Whether its process is found to be ready once it is up.
    pub(crate) fn gets_ready(&self) -> bool {
        self.checksum().is_none_or(|config| !self.habits.never_ready.contains(config))
    }

    /// Whether its process finds the other nodes once it is up.
    pub(crate) fn joins(&self) -> bool {
        self.checksum().is_none_or(|config| !self.habits.never_joins.contains(config))
    }

    /// When the process is up, in the simulated time.
    pub(crate) fn process_turns_at(&self) -> impl Iterator<Item = u64> + '_ {
        self.process
            .iter()
            .flat_map(|process| [Some(process.up_at), process.dies_at].into_iter().flatten())
    }

    pub(crate) fn checksum(&self) -> Option<&str> {
        self.process.as_ref()?.checksum.as_deref()
    }

    /// The manager is unready on purpose.
    pub(crate) fn is_draining(&self) -> bool {
        self.life.reason().is_some_and(|reason| reason.code == "draining")
    }

    /// It starts its engine by itself after a while.
    pub(crate) fn will_resume(&self) -> bool {
        self.life.intent().resume.is_some()
    }

    pub(crate) fn life(&self) -> &Lifecycle {
        &self.life
    }

    /// The part of `GET /es/status` that decisions need.
    pub(crate) fn status(&self, now: u64) -> Manager {
        let run = self.life.run();
        let is_up = self.up(now).is_some() && !self.is_silent() && !self.is_draining();
        Manager {
            version: "0.1.0".into(),
            upgraded_from: None,
            pod_uid: self.life.policy().pod.clone(),
            durable: self.life.is_durable(),
            desired: self.life.desired(),
            state: self.life.state(),
            draining: self.is_draining(),
            ready: Some(is_up && self.life.state() == stayput_api::State::Running),
            sequence: self.life.intent().fencing.sequence,
            last_request: self.life.last_request().map(|last| LastRequest {
                sequence: last.sequence,
                kind: last.kind,
                accepted: last.accepted,
                by: last.by,
            }),
            run: run.map(|run| Run {
                id: run.id,
                checksum: run.checksum,
                config: run.config,
                started: crate::Time::parse(&run.started_at).ok(),
                variables: run.environment,
            }),
            last_exit: self.life.last_exit().map(|exit| LastExit {
                run: exit.run.clone(),
                code: exit.shell_code(),
                reason: exit.reason,
                ended: crate::Time::parse(&exit.at).ok(),
            }),
            mounted: self.mounted.clone(),
            lagging: None,
            live_mismatch: None,
            ignored_archive: None,
            clock_ahead: 0,
            ready_since: None,
            variables: Some(digest(&self.environment)),
            last_good: self.last_good.clone(),
            reason: self.life.reason().map(|reason| reason.message),
        }
    }
}
