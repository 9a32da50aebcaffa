//! The steps of a stop: drain, stop signal to the leader, grace, thread dump, KILL to the tree. Also
//! the end of the manager itself.

use std::time::UNIX_EPOCH;

use super::commit::Deciding;
use super::intent::Verdict;
use super::{Effect, Ending, Held, HeldCode, Lifecycle, Limits, Millis, Phase, Request, Timer};
use stayput_api as api;
use stayput_api::{Accepted, Desired, DrainRequest, Exit, ExitReason, Refusal, Span, StopRequest};

impl Lifecycle {
    /// Carries out an accepted stop.
    pub(super) fn stop_engine(&mut self, grace: Option<Span>, drain: Option<Span>) {
        let grace = grace.map_or(self.policy.grace, |span| span.0);
        match self.phase {
            Phase::Stopped => {}
            Phase::Failed | Phase::Backoff => {
                self.clear_timers();
                self.phase = Phase::Stopped;
            }
            Phase::Starting | Phase::Running => {
                let drain = drain.map_or(self.policy.drain, |span| span.0);
                self.begin_stop(drain, Some(grace));
            }
            Phase::Draining | Phase::Signalled | Phase::Lingering => {
                self.shorten_drain(drain);
                self.shorten_grace(grace);
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing | Phase::Stuck => {}
        }
    }

    /// Begins the stop of a live leader.
    pub(super) fn begin_stop(&mut self, drain: Millis, grace: Option<Millis>) {
        self.clear_timers();
        self.ending = Some(Ending::new(self.now, grace));
        if drain > 0 {
            self.phase = Phase::Draining;
            self.timers.insert(Timer::Drain, self.now + drain);
        } else {
            self.signal_leader();
        }
    }

    /// Shortens the remaining drain for a repeated stop, and never lengthens it.
    pub(super) fn shorten_drain(&mut self, drain: Option<Span>) {
        if let (Some(drain), Some(due)) = (drain, self.timers.get_mut(&Timer::Drain)) {
            *due = (*due).min(self.now + drain.0);
        }
    }

    /// Shortens the remaining time of an engine for a repeated stop, and never lengthens it.
    pub(super) fn shorten_grace(&mut self, bound: Millis) {
        if self.phase == Phase::Draining {
            if let Some(ending) = &mut self.ending {
                ending.grace = Some(ending.grace.map_or(bound, |grace| grace.min(bound)));
            }
            return;
        }
        let due = self.timers.entry(Timer::Grace).or_insert(self.now + bound);
        *due = (*due).min(self.now + bound);
    }

    fn signal_leader(&mut self) {
        self.phase = Phase::Signalled;
        if let Some(ending) = &mut self.ending {
            ending.signalled = true;
            if let Some(grace) = ending.grace {
                self.timers.insert(Timer::Grace, self.now + grace);
            }
        }
        // Scan first: after the leader has ended, it is no longer known which processes descend
        // from it.
        self.out.push(Effect::ScanTree);
        self.out.push(Effect::SignalLeader(self.policy.stop_signal));
    }

    /// Ends the drain, which is over or was cut short.
    pub(super) fn drain_over(&mut self) {
        if self.phase == Phase::Draining {
            self.timers.remove(&Timer::Drain);
            self.signal_leader();
        }
    }

    /// Handles the end of the grace of leader and server.
    pub(super) fn grace_over(&mut self) {
        if !matches!(self.phase, Phase::Signalled | Phase::Lingering) {
            return;
        }
        let jvm = self.ending.as_ref().is_some_and(|ending| ending.jvm);
        if self.policy.thread_dump && jvm {
            self.phase = Phase::Dumping;
            self.timers.insert(Timer::Dump, self.now + Limits::THREAD_DUMP_TIMEOUT);
            self.out.push(Effect::DumpThreads);
        } else {
            self.kill_tree();
        }
    }

    /// Sends KILL: the threads were printed, or the grace of the stragglers is over.
    pub(super) fn kill_due(&mut self) {
        if matches!(self.phase, Phase::Dumping | Phase::Straggling) {
            self.kill_tree();
        }
    }

    /// Handles the end of the time for KILL to take effect.
    pub(super) fn kill_over(&mut self) {
        if self.phase == Phase::Killing {
            self.phase = Phase::Stuck;
            self.out.push(Effect::KillTree);
            self.out.push(Effect::ScanTree);
            if self.terminating {
                self.end(Self::STUCK);
            }
        }
    }

    fn kill_tree(&mut self) {
        self.phase = Phase::Killing;
        self.timers.remove(&Timer::Grace);
        self.timers.insert(Timer::Kill, self.now + Limits::KILL_TIMEOUT);
        self.out.push(Effect::KillTree);
        self.out.push(Effect::ScanTree);
    }

    // A drain ahead of a stop: the engine serves on, but is not ready for a short time. If no stop comes,
    // it is ready again by itself: nothing is decided yet, so nothing is written down.

    pub(super) fn drain_requested(&mut self, request: DrainRequest) {
        let reply = self.drain_ahead(request);
        self.out.push(Effect::Reply(reply));
    }

    /// Begins a drain. An engine that does not run is not ready either: there is nothing to do.
    fn drain_ahead(&mut self, request: DrainRequest) -> Result<Accepted, Refusal> {
        let DrainRequest { sequence, pod } = request;
        // It is judged as the stop that follows it, so that a late one is refused.
        let stop = Request::Stop(StopRequest { sequence, pod, ..StopRequest::default() });
        let verdict = self.judge(&stop)?;
        let is_new = sequence.is_none_or(|sequence| sequence > self.drained);
        if let Verdict::Fresh(fresh) = verdict
            && is_new
            && self.phase == Phase::Running
        {
            self.drained = fresh;
            self.timers.insert(Timer::Drain, self.now + Limits::DRAIN_AHEAD);
        }
        Ok(Accepted { sequence: self.intent.fencing.sequence, done: true })
    }

    /// True if the engine runs, and is not ready on purpose.
    pub fn drains_ahead(&self) -> bool {
        self.phase == Phase::Running && self.timers.contains_key(&Timer::Drain)
    }

    /// Ends the drain, because the engine is to run on: it is ready again at once.
    pub(super) fn end_drain_ahead(&mut self) {
        if self.drains_ahead() {
            self.timers.remove(&Timer::Drain);
        }
    }

    // The end of the manager itself: what TERM causes, and when the manager may exit.

    /// Ends the engine, then the manager, after TERM. Cancels a start that is not spawned yet, and
    /// ends a drain that is longer than that of the settings: such a drain would take the engine's
    /// own time to end, and a pod that is being deleted has left its Services.
    pub(super) fn terminate(&mut self) {
        let first = !std::mem::replace(&mut self.terminating, true);
        if first {
            self.drop_start_in_flight();
        } else if self.exit.is_some() {
            // The second TERM: do not wait for the journal any more.
            self.persist_failed(self.journal.given);
        }
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Backoff => self.end_without_engine(),
            Phase::Starting | Phase::Running => self.stop_to_end(),
            Phase::Draining | Phase::Signalled | Phase::Lingering if first => {
                self.shorten_drain(Some(Span(self.policy.drain)));
                self.limit_remaining_time(self.policy.termination_grace);
                if self.policy.drain == 0 {
                    self.drain_over();
                }
            }
            Phase::Draining => {
                self.shorten_grace(self.policy.tree_grace);
                self.drain_over();
            }
            Phase::Signalled | Phase::Lingering => {
                self.shorten_grace(self.policy.tree_grace);
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing => {}
            Phase::Stuck => self.end(Self::STUCK),
        }
    }

    /// Exit code with a stuck engine, as after KILL: the container's end comes next.
    pub(super) const STUCK: i32 = 137;

    /// Stops a live engine because the manager ends.
    pub(super) fn stop_to_end(&mut self) {
        let bound = self.policy.termination_grace;
        self.begin_stop(self.policy.drain, bound);
        self.limit_remaining_time(bound);
    }

    /// Shortens the remaining drain and grace to the limit.
    fn limit_remaining_time(&mut self, bound: Option<Millis>) {
        let Some(bound) = bound else {
            return;
        };
        let mut drain = 0;
        if let Some(due) = self.timers.get_mut(&Timer::Drain) {
            *due = (*due).min(self.now + bound);
            drain = due.saturating_sub(self.now);
        }
        self.shorten_grace(bound - drain);
    }

    /// Ends the manager without an engine, unless one is being spawned: that one is stopped after its spawn.
    pub(super) fn end_without_engine(&mut self) {
        if matches!(self.deciding, Some(Deciding::Spawning { .. })) {
            return;
        }
        // "Stopped" was requested, so the code that the engine ended with does not matter.
        let code = if self.phase == Phase::Stopped { 0 } else { self.own_code.unwrap_or(0) };
        self.end(code);
    }

    /// Ends the manager with this code, or with the code that was set before.
    pub(super) fn end(&mut self, code: i32) {
        self.exit.get_or_insert(code);
    }

    /// Ends the manager after a stop that asked for that, too: the next manager finds the stop in
    /// the journal.
    pub(super) fn end_after_stop(&mut self) {
        if self.exit_after_stop && self.deciding.is_none() && self.is_stopped_for_good() {
            self.end(0);
        }
    }

    /// Ends the manager once the current request is answered, and the journal is written or its time
    /// is over.
    pub(super) fn end_when_settled(&mut self) {
        let Some(code) = self.exit else {
            return;
        };
        if self.deciding.is_none() && self.journal.is_answered() {
            self.out.push(Effect::Exit(code));
        }
    }

    // A run whose end no manager saw: the container was killed as a whole, with the engine and the
    // manager in it. A kubelet from 1.28 on does so on cgroup v2 when memory runs out.

    /// Takes over a run from the journal, before anything else is decided. True if the intent
    /// changed by that.
    pub(super) fn ended_with_manager(&mut self, run: &api::Run) -> bool {
        self.last_exit = Some(Exit {
            run: run.id.clone(),
            code: None,
            signal: None,
            reason: ExitReason::EndedWithManager,
            took_ms: 0,
            ran_ms: self.now.saturating_sub(started_at(run).unwrap_or(self.now)),
            at: super::timestamp(self.now),
            stragglers: Vec::new(),
            unnamed: 0,
            strangers: Vec::new(),
        });
        let intent = &mut self.intent;
        // One that was ready before is started again, as after every other end of the container.
        if !intent.unproven || intent.held.is_some() || intent.desired == Desired::Stopped {
            return false;
        }
        intent.unseen_ends = intent.unseen_ends.saturating_add(1);
        if intent.unseen_ends >= Limits::MAX_UNSEEN_ENDS {
            let message = format!(
                "the engine ended {} times together with its manager before it was ready: the \
                 container was killed, often because its memory ran out (kubectl describe pod: \
                 OOMKilled); give it more memory or another config, and start it again",
                intent.unseen_ends
            );
            intent.held = Some(Held { code: HeldCode::EndedWithManager, message });
        }
        true
    }
}

fn started_at(run: &api::Run) -> Option<Millis> {
    let at = humantime::parse_rfc3339(&run.started_at).ok()?;
    Millis::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
