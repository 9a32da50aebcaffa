//! The stop ladder: drain, stop signal to the leader, grace, thread dump, KILL to the tree; and
//! what a leader leaves behind when it ends.

use super::{Effect, ExitStatus, Lifecycle, Limits, Millis, OnExit, Phase, Timer, Tree};
use stayput_api::{Exit, ExitReason, Process, Span};

/// A run on its way out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ending {
    /// First step of the stop, or the leader's own end.
    began: Millis,
    /// How much time the stop signal gives, until it is sent; none: no bound.
    grace: Option<Millis>,
    /// The stop signal was sent, to the leader or to a server that outlived it.
    signalled: bool,
    /// How the leader ended, once it is reaped, and whose doing that was.
    leader: Option<(ExitStatus, ExitReason)>,
    /// A process of the engine can print its threads.
    jvm: bool,
    /// What outlived leader and server.
    stragglers: Vec<Process>,
    /// Adopted orphans that are not the engine's.
    strangers: Vec<Process>,
    /// Why what is left could not be looked at, last time.
    unseen: Option<String>,
}

impl Ending {
    fn new(now: Millis, grace: Option<Millis>) -> Self {
        Self {
            began: now,
            grace,
            signalled: false,
            leader: None,
            jvm: false,
            stragglers: Vec::new(),
            strangers: Vec::new(),
            unseen: None,
        }
    }

    /// Forgets what only people read.
    #[cfg(test)]
    pub(super) fn forget_names(&mut self) {
        self.stragglers.clear();
        self.strangers.clear();
        self.unseen = None;
    }

    /// What is in the way, for people.
    pub(super) fn stragglers(&self) -> &[Process] {
        &self.stragglers
    }

    /// Why what is in the way cannot be told, for people.
    pub(super) fn unseen(&self) -> Option<&str> {
        self.unseen.as_deref()
    }
}

impl Lifecycle {
    /// Whether the leader is there to be signalled.
    pub fn leader_is_alive(&self) -> bool {
        self.run.is_some() && self.ending.as_ref().is_none_or(|ending| ending.leader.is_none())
    }

    /// Whether a run is ending and deaths must be followed by a look at the tree.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Carries out an accepted stop.
    pub(super) fn stop_engine(
        &mut self,
        now: Millis,
        grace: Option<Span>,
        drain: Option<Span>,
        out: &mut Vec<Effect>,
    ) {
        let grace = grace.map_or(self.policy.grace, |span| span.0);
        match self.phase {
            Phase::Stopped => {}
            Phase::Failed | Phase::Backoff => {
                self.clear_timers();
                self.phase = Phase::Stopped;
            }
            Phase::Starting | Phase::Running => {
                let drain = drain.map_or(self.policy.drain, |span| span.0);
                self.begin_stop(now, drain, Some(grace), out);
            }
            Phase::Draining | Phase::Signalled | Phase::Lingering => {
                if let (Some(drain), Some(due)) = (drain, self.timers.get_mut(&Timer::Drain)) {
                    *due = (*due).min(now + drain.0);
                }
                self.shorten_grace(now, grace);
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing | Phase::Stuck => {}
        }
    }

    /// Enters the ladder with a live leader.
    pub(super) fn begin_stop(
        &mut self,
        now: Millis,
        drain: Millis,
        grace: Option<Millis>,
        out: &mut Vec<Effect>,
    ) {
        self.clear_timers();
        self.ending = Some(Ending::new(now, grace));
        if drain > 0 {
            self.phase = Phase::Draining;
            self.timers.insert(Timer::Drain, now + drain);
        } else {
            self.signal_leader(now, out);
        }
    }

    /// A repeated stop may shorten the time an engine has, never lengthen it.
    pub(super) fn shorten_grace(&mut self, now: Millis, bound: Millis) {
        if self.phase == Phase::Draining {
            if let Some(ending) = &mut self.ending {
                ending.grace = Some(ending.grace.map_or(bound, |grace| grace.min(bound)));
            }
            return;
        }
        let due = self.timers.entry(Timer::Grace).or_insert(now + bound);
        *due = (*due).min(now + bound);
    }

    fn signal_leader(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.phase = Phase::Signalled;
        if let Some(ending) = &mut self.ending {
            ending.signalled = true;
            if let Some(grace) = ending.grace {
                self.timers.insert(Timer::Grace, now + grace);
            }
        }
        // Look first: who descends from the leader cannot be told once the leader is gone.
        out.push(Effect::ScanTree);
        out.push(Effect::SignalLeader(self.policy.stop_signal));
    }

    /// The drain is over, or cut short.
    pub(super) fn drain_over(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.phase == Phase::Draining {
            self.timers.remove(&Timer::Drain);
            self.signal_leader(now, out);
        }
    }

    /// Leader and server had their time.
    pub(super) fn grace_over(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if !matches!(self.phase, Phase::Signalled | Phase::Lingering) {
            return;
        }
        let jvm = self.ending.as_ref().is_some_and(|ending| ending.jvm);
        if self.policy.thread_dump && jvm {
            self.phase = Phase::Dumping;
            self.timers.insert(Timer::Dump, now + Limits::DUMP);
            out.push(Effect::DumpThreads);
        } else {
            self.kill_tree(now, out);
        }
    }

    /// The threads were printed, or the stragglers had their time.
    pub(super) fn last_rung(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Dumping | Phase::Straggling) {
            self.kill_tree(now, out);
        }
    }

    /// KILL had its time.
    pub(super) fn kill_over(&mut self, out: &mut Vec<Effect>) {
        if self.phase == Phase::Killing {
            self.phase = Phase::Stuck;
            out.push(Effect::KillTree);
            out.push(Effect::ScanTree);
            if self.terminating {
                self.end(Self::STUCK);
            }
        }
    }

    fn kill_tree(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.phase = Phase::Killing;
        self.timers.remove(&Timer::Grace);
        self.timers.insert(Timer::Kill, now + Limits::KILL);
        out.push(Effect::KillTree);
        out.push(Effect::ScanTree);
    }

    pub(super) fn engine_exited(
        &mut self,
        now: Millis,
        status: ExitStatus,
        oom: bool,
        out: &mut Vec<Effect>,
    ) {
        const SIGKILL: i32 = 9;
        if self.run.is_none() {
            return;
        }
        let asked = matches!(
            self.phase,
            Phase::Signalled
                | Phase::Lingering
                | Phase::Straggling
                | Phase::Dumping
                | Phase::Killing
                | Phase::Stuck
        );
        let reason = if oom {
            ExitReason::Oom
        } else if status.shell_code() == 128 + SIGKILL {
            // By the signal, or by a launcher that passes its server's death on.
            ExitReason::Killed
        } else if asked {
            ExitReason::Stopped
        } else {
            ExitReason::Exited
        };
        let mut ending = self.ending.take().unwrap_or_else(|| Ending::new(now, None));
        ending.leader = Some((status, reason));
        self.ending = Some(ending);
        self.own_code = Some(status.shell_code());
        match self.phase {
            Phase::Starting | Phase::Running | Phase::Draining | Phase::Signalled => {
                self.phase = Phase::Lingering;
                self.timers.remove(&Timer::Drain);
                self.timers.remove(&Timer::Settle);
            }
            // KILL is on its way to the rest; its own timers run on.
            Phase::Dumping | Phase::Killing | Phase::Stuck => {}
            // No leader can end there.
            Phase::Stopped
            | Phase::Failed
            | Phase::Backoff
            | Phase::Lingering
            | Phase::Straggling => {}
        }
        let ends_with_leader =
            !self.policy.api && (self.terminating || self.policy.on_exit == OnExit::Exit);
        if ends_with_leader {
            // As tini does: nobody could ask about the rest, and it ends with the container.
            self.finish(now, out);
        } else {
            out.push(Effect::ScanTree);
        }
    }

    /// A look at what is left of the engine.
    pub(super) fn tree_seen(&mut self, now: Millis, tree: Tree, out: &mut Vec<Effect>) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        ending.jvm = tree.jvm || ending.jvm;
        if ending.leader.is_none() {
            return;
        }
        let empty = tree.is_empty();
        let has_server = !tree.server.is_empty();
        for process in tree.stragglers {
            if !ending.stragglers.iter().any(|known| known.pid == process.pid) {
                ending.stragglers.push(process);
            }
        }
        ending.strangers = tree.strangers;
        ending.unseen = tree.unseen;
        let unasked = !std::mem::replace(&mut ending.signalled, true);
        let grace = ending.grace;
        if empty {
            self.finish(now, out);
            return;
        }
        match self.phase {
            Phase::Lingering if has_server => {
                if unasked {
                    // It lost its launcher unasked: it ends by itself, and is asked to as well.
                    let grace = grace.unwrap_or_else(|| self.lingering_grace());
                    self.timers.entry(Timer::Grace).or_insert(now + grace);
                    out.push(Effect::SignalServer(self.policy.stop_signal));
                }
            }
            Phase::Lingering => {
                self.phase = Phase::Straggling;
                self.timers.remove(&Timer::Grace);
                self.timers.insert(Timer::TreeGrace, now + self.policy.tree_grace);
                out.push(Effect::TermStragglers);
            }
            // What was forked while the rest was being killed.
            Phase::Killing | Phase::Stuck => out.push(Effect::KillTree),
            Phase::Straggling | Phase::Dumping => {}
            Phase::Stopped
            | Phase::Failed
            | Phase::Backoff
            | Phase::Starting
            | Phase::Running
            | Phase::Draining
            | Phase::Signalled => {}
        }
    }

    fn lingering_grace(&self) -> Millis {
        if self.terminating {
            self.policy.termination_grace.unwrap_or(self.policy.grace)
        } else {
            self.policy.grace
        }
    }

    /// No process of the engine is left.
    fn finish(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let (Some(run), Some(ending)) = (self.run.take(), self.ending.take()) else {
            return;
        };
        let Some((status, reason)) = ending.leader else {
            return;
        };
        let (code, signal) = match status {
            ExitStatus::Code(code) => (Some(code), None),
            ExitStatus::Signal(signal) => (None, Some(signal)),
        };
        self.last_exit = Some(Exit {
            run: run.id.clone(),
            code,
            signal,
            reason,
            took_ms: now.saturating_sub(ending.began),
            ran_ms: now.saturating_sub(run.started_at),
            at: super::view::timestamp(now),
            stragglers: ending.stragglers,
            strangers: ending.strangers,
        });
        self.clear_timers();
        self.run_is_over(now, &run, reason, out);
    }

    /// A run's timers go with the run, but a request may be waiting for the journal.
    pub(super) fn clear_timers(&mut self) {
        self.timers.retain(|timer, _| matches!(timer, Timer::Journal | Timer::Prepare));
    }
}
