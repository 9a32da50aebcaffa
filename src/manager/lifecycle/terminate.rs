//! The end of the manager itself: what TERM causes, and when the manager may exit.

use super::commit::Deciding;
use super::{Effect, Lifecycle, Millis, Phase, Timer};
use stayput_api::Span;

impl Lifecycle {
    /// Ends the engine, then the manager, after TERM. Cancels a start that is not spawned yet, and
    /// ends a drain that is longer than that of the settings: such a drain would take the engine's
    /// own time to end, and a pod that is being deleted has left its Services.
    pub(super) fn terminate(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let first = !std::mem::replace(&mut self.terminating, true);
        if first {
            self.drop_start_in_flight(now, out);
        } else if self.exit.is_some() {
            // The second TERM: do not wait for the journal any more.
            self.persist_failed(now, self.journal.given, out);
        }
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Backoff => self.end_without_engine(),
            Phase::Starting | Phase::Running => self.stop_to_end(now, out),
            Phase::Draining | Phase::Signalled | Phase::Lingering if first => {
                self.shorten_drain(now, Some(Span(self.policy.drain)));
                self.limit_remaining_time(now, self.policy.termination_grace);
                if self.policy.drain == 0 {
                    self.drain_over(now, out);
                }
            }
            Phase::Draining => {
                self.shorten_grace(now, self.policy.tree_grace);
                self.drain_over(now, out);
            }
            Phase::Signalled | Phase::Lingering => {
                self.shorten_grace(now, self.policy.tree_grace);
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing => {}
            Phase::Stuck => self.end(Self::STUCK),
        }
    }

    /// Exit code with a stuck engine, as after KILL: the container's end comes next.
    pub(super) const STUCK: i32 = 137;

    /// Stops a live engine because the manager ends.
    pub(super) fn stop_to_end(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let bound = self.policy.termination_grace;
        self.begin_stop(now, self.policy.drain, bound, out);
        self.limit_remaining_time(now, bound);
    }

    /// Shortens the remaining drain and grace to the limit.
    fn limit_remaining_time(&mut self, now: Millis, bound: Option<Millis>) {
        let Some(bound) = bound else {
            return;
        };
        let mut drain = 0;
        if let Some(due) = self.timers.get_mut(&Timer::Drain) {
            *due = (*due).min(now + bound);
            drain = due.saturating_sub(now);
        }
        self.shorten_grace(now, bound - drain);
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
    pub(super) fn end_when_settled(&mut self, out: &mut Vec<Effect>) {
        let Some(code) = self.exit else {
            return;
        };
        if self.deciding.is_none() && self.journal.is_answered() {
            out.push(Effect::Exit(code));
        }
    }
}
