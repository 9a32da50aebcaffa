//! Decisions at the end of a run: end, stay stopped, hold or restart.

use super::{Effect, Held, HeldCode, Lifecycle, Limits, Millis, OnExit, Phase, Run, Timer};
use stayput_api::{ConfigChoice, Desired, ExitReason};

impl Lifecycle {
    pub(super) fn run_is_over(
        &mut self,
        now: Millis,
        run: &Run,
        reason: ExitReason,
        out: &mut Vec<Effect>,
    ) {
        if self.terminating {
            self.phase = Phase::Stopped;
            self.record(out);
            self.end(self.exit_code(reason));
        } else if self.intent.desired == Desired::Stopped {
            self.phase = Phase::Stopped;
            self.record_end(out);
        } else if run.requested && !run.was_ready {
            // Whether a last good config is kept is not known here: the status shows it.
            let advice = match run.config {
                ConfigChoice::Mounted => "; start it again when its config is repaired",
                ConfigChoice::LastGood => {
                    ", also on the last good config; its log shows the cause; start it again when \
                     that is repaired"
                }
            };
            let message = format!("the engine {} before it was ready{advice}", self.how_it_ended());
            self.hold(Held { code: HeldCode::StartFailed, message }, out);
        } else {
            self.ended_by_itself(now, out);
        }
    }

    /// Applies the policy for an end without a request.
    pub(super) fn ended_by_itself(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let message = format!("the engine {}", self.how_it_ended());
        self.by_policy(now, Held { code: HeldCode::EndedByItself, message }, out);
    }

    /// Applies the policy for an end, or for a failed start, without a request.
    pub(super) fn by_policy(&mut self, now: Millis, held: Held, out: &mut Vec<Effect>) {
        match self.policy.on_exit {
            OnExit::Exit => self.end_failed(held, out),
            OnExit::Hold => self.hold(to_be_started(held), out),
            OnExit::Restart => self.restart_later(now, held, out),
        }
    }

    /// Like [`Self::by_policy`], for a start that failed because of a condition that may be over soon, such
    /// as a full disk. The start is retried and does not count: nobody may be there to request it.
    pub(super) fn wait_out(&mut self, now: Millis, held: Held, out: &mut Vec<Effect>) {
        match self.policy.on_exit {
            OnExit::Exit => self.end_failed(held, out),
            OnExit::Hold | OnExit::Restart => self.back_off(now, Limits::MAX_BACKOFF, held, out),
        }
    }

    /// Ends the manager because the engine does not run, and keeps the reason.
    fn end_failed(&mut self, failure: Held, out: &mut Vec<Effect>) {
        self.failure = Some(failure);
        self.phase = Phase::Failed;
        self.record(out);
        self.end(self.own_code.unwrap_or(1));
    }

    fn restart_later(&mut self, now: Millis, held: Held, out: &mut Vec<Effect>) {
        self.own_ends.retain(|ended| ended + Limits::RESTART_WINDOW > now);
        self.own_ends.push(now);
        let ends = self.own_ends.len();
        if ends > Limits::MAX_RESTARTS {
            let message = format!(
                "{} times in {} minutes: {}",
                ends,
                Limits::RESTART_WINDOW / 60_000,
                held.message
            );
            self.own_ends.clear();
            let held = Held { code: HeldCode::TooManyRestarts, message };
            if self.policy.api {
                self.hold(to_be_started(held), out);
            } else {
                // No client could request a start, so only the container's restart policy is left.
                self.end_failed(held, out);
            }
            return;
        }
        let wait = backoff(ends, self.policy.seed.wrapping_add(self.starts));
        self.back_off(now, wait, held, out);
    }

    fn back_off(&mut self, now: Millis, wait: Millis, held: Held, out: &mut Vec<Effect>) {
        self.failure = Some(held);
        self.phase = Phase::Backoff;
        self.record(out);
        self.timers.insert(Timer::Backoff, now + wait);
    }

    /// Waits for a request, also after a restart of the container.
    pub(super) fn hold(&mut self, held: Held, out: &mut Vec<Effect>) {
        self.phase = Phase::Failed;
        self.clear_timers();
        self.amend(|intent| intent.held = Some(held.clone()), out);
    }

    /// The manager's own exit code after TERM.
    fn exit_code(&self, reason: ExitReason) -> i32 {
        let code = self.own_code.unwrap_or(0);
        let clean = reason == ExitReason::Stopped && self.policy.success_exit.contains(&code);
        if clean { 0 } else { code }
    }
}

/// Adds that only a request starts the engine. Messages of other codes already say what to do.
fn to_be_started(held: Held) -> Held {
    if !matches!(held.code, HeldCode::EndedByItself | HeldCode::TooManyRestarts) {
        return held;
    }
    Held { message: held.message + "; start it again when the cause is repaired", ..held }
}

/// How long to wait before restart number `ends` in the window: doubling, with ± 10 % so that the
/// pods of a cluster that failed together do not start together.
fn backoff(ends: usize, seed: u64) -> Millis {
    let doublings = u32::try_from(ends.saturating_sub(1)).unwrap_or(u32::MAX);
    let base = Limits::MIN_BACKOFF
        .saturating_mul(1_u64.checked_shl(doublings).unwrap_or(u64::MAX))
        .min(Limits::MAX_BACKOFF);
    // A multiplicative hash (Knuth) is enough here; nothing has to be unpredictable.
    let spread = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 21;
    base * (90 + spread) / 100
}
