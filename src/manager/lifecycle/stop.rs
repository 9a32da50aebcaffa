//! The steps of a stop: drain, stop signal to the leader, grace, thread dump, KILL to the tree.

use super::{Effect, Ending, Lifecycle, Limits, Millis, Phase, Timer};
use stayput_api::Span;

impl Lifecycle {
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
                self.shorten_drain(now, drain);
                self.shorten_grace(now, grace);
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing | Phase::Stuck => {}
        }
    }

    /// Begins the stop of a live leader.
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

    /// Shortens the remaining drain for a repeated stop, and never lengthens it.
    pub(super) fn shorten_drain(&mut self, now: Millis, drain: Option<Span>) {
        if let (Some(drain), Some(due)) = (drain, self.timers.get_mut(&Timer::Drain)) {
            *due = (*due).min(now + drain.0);
        }
    }

    /// Shortens the remaining time of an engine for a repeated stop, and never lengthens it.
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
        // Scan first: after the leader has ended, it is no longer known which processes descend
        // from it.
        out.push(Effect::ScanTree);
        out.push(Effect::SignalLeader(self.policy.stop_signal));
    }

    /// Ends the drain, which is over or was cut short.
    pub(super) fn drain_over(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.phase == Phase::Draining {
            self.timers.remove(&Timer::Drain);
            self.signal_leader(now, out);
        }
    }

    /// Handles the end of the grace of leader and server.
    pub(super) fn grace_over(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if !matches!(self.phase, Phase::Signalled | Phase::Lingering) {
            return;
        }
        let jvm = self.ending.as_ref().is_some_and(|ending| ending.jvm);
        if self.policy.thread_dump && jvm {
            self.phase = Phase::Dumping;
            self.timers.insert(Timer::Dump, now + Limits::THREAD_DUMP_TIMEOUT);
            out.push(Effect::DumpThreads);
        } else {
            self.kill_tree(now, out);
        }
    }

    /// Sends KILL: the threads were printed, or the grace of the stragglers is over.
    pub(super) fn kill_due(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Dumping | Phase::Straggling) {
            self.kill_tree(now, out);
        }
    }

    /// Handles the end of the time for KILL to take effect.
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
        self.timers.insert(Timer::Kill, now + Limits::KILL_TIMEOUT);
        out.push(Effect::KillTree);
        out.push(Effect::ScanTree);
    }
}
