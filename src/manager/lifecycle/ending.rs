//! The end of a run: the leader ends, then the processes it leaves behind, until no process is
//! left.

use super::{
    Effect, ExitStatus, Held, HeldCode, Lifecycle, Limits, Millis, OnExit, Phase, Run, Timer, Tree,
};
use stayput_api::{ConfigChoice, Desired, Exit, ExitReason, Process};

/// How many processes of each kind an end names: it is written to the journal, whose size is
/// limited.
const MAX_NAMED: usize = 100;

/// A run that is ending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ending {
    /// Time when the stop began or the leader ended by itself.
    pub(super) began: Millis,
    /// The grace, which begins with the stop signal. Set until that is sent; `None` means no limit.
    pub(super) grace: Option<Millis>,
    /// True if the stop signal was sent, to the leader or to a server that outlived it.
    pub(super) signalled: bool,
    /// Exit status of the leader, once it is reaped, and the reason.
    pub(super) leader: Option<(ExitStatus, ExitReason)>,
    /// True if a process of the engine can print its threads.
    pub(super) jvm: bool,
    /// Processes that outlived leader and server.
    pub(super) stragglers: Vec<Process>,
    /// Adopted orphans that are not the engine's.
    pub(super) strangers: Vec<Process>,
    /// Number of processes of both kinds that were seen in one scan but not named, at most.
    pub(super) unnamed: usize,
    /// Reason why the remaining processes could not be read at the last scan.
    pub(super) unseen: Option<String>,
}

impl Ending {
    pub(super) fn new(now: Millis, grace: Option<Millis>) -> Self {
        Self {
            began: now,
            grace,
            signalled: false,
            leader: None,
            jvm: false,
            stragglers: Vec::new(),
            strangers: Vec::new(),
            unnamed: 0,
            unseen: None,
        }
    }

    /// Names the processes that a scan found, up to the limit.
    fn name(&mut self, stragglers: Vec<Process>, mut strangers: Vec<Process>) {
        let mut unnamed = strangers.len().saturating_sub(MAX_NAMED);
        for process in stragglers {
            if self.stragglers.iter().any(|known| known.pid == process.pid) {
                continue;
            }
            if self.stragglers.len() < MAX_NAMED {
                self.stragglers.push(process);
            } else {
                unnamed += 1;
            }
        }
        strangers.truncate(MAX_NAMED);
        self.strangers = strangers;
        self.unnamed = self.unnamed.max(unnamed);
    }

    /// Drops the fields that are only shown to people.
    #[cfg(test)]
    pub(super) fn forget_names(&mut self) {
        self.stragglers.clear();
        self.strangers.clear();
        self.unnamed = 0;
        self.unseen = None;
    }

    /// The remaining processes, for people.
    pub(super) fn stragglers(&self) -> &[Process] {
        &self.stragglers
    }

    /// Reason why the remaining processes are not known, for people.
    pub(super) fn unseen(&self) -> Option<&str> {
        self.unseen.as_deref()
    }
}

impl Lifecycle {
    /// True if the leader is there to be signalled.
    pub fn leader_is_alive(&self) -> bool {
        self.run.is_some() && self.ending.as_ref().is_none_or(|ending| ending.leader.is_none())
    }

    /// True while a run is ending, so that each death must be followed by a scan of the tree.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    pub(super) fn engine_exited(&mut self, status: ExitStatus, oom: bool) {
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
        // Another process may have run out of memory since the launch.
        let by_manager = matches!(self.phase, Phase::Killing | Phase::Stuck);
        let reason = if oom && !by_manager {
            ExitReason::Oom
        } else if status.shell_code() == 128 + SIGKILL {
            // Ended by the signal, or by a launcher that reports its server's death as its own
            // code.
            ExitReason::Killed
        } else if asked {
            ExitReason::Stopped
        } else {
            ExitReason::Exited
        };
        let mut ending = self.ending.take().unwrap_or_else(|| Ending::new(self.now, None));
        ending.leader = Some((status, reason));
        self.ending = Some(ending);
        self.own_code = Some(status.shell_code());
        match self.phase {
            Phase::Starting | Phase::Running | Phase::Draining | Phase::Signalled => {
                self.phase = Phase::Lingering;
                self.timers.remove(&Timer::Drain);
                self.timers.remove(&Timer::Settle);
                self.timers.remove(&Timer::Prove);
            }
            // The remaining processes were sent KILL; their own timers continue.
            Phase::Dumping | Phase::Killing | Phase::Stuck => {}
            // No leader can end in these phases.
            Phase::Stopped
            | Phase::Failed
            | Phase::Backoff
            | Phase::Lingering
            | Phase::Straggling => {}
        }
        let ends_with_leader =
            !self.policy.api && (self.terminating || self.policy.on_exit == OnExit::Exit);
        if ends_with_leader {
            // As tini does: without an API no request can come, and the remaining processes end
            // with the container.
            self.finish();
        } else {
            self.out.push(Effect::ScanTree);
        }
    }

    /// Handles the result of a scan: the remaining processes of the engine.
    pub(super) fn tree_seen(&mut self, tree: Tree) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        ending.jvm = tree.jvm || ending.jvm;
        if ending.leader.is_none() {
            return;
        }
        let empty = tree.is_empty();
        let has_server = !tree.server.is_empty();
        ending.name(tree.stragglers, tree.strangers);
        ending.unseen = tree.unseen;
        let unasked = !std::mem::replace(&mut ending.signalled, true);
        let grace = ending.grace;
        if empty {
            self.finish();
            return;
        }
        match self.phase {
            Phase::Lingering if has_server => {
                if unasked {
                    // Its launcher ended by itself: the server will end by itself too, and gets the
                    // stop signal as well.
                    let grace = grace.unwrap_or_else(|| self.lingering_grace());
                    self.timers.entry(Timer::Grace).or_insert(self.now + grace);
                    self.out.push(Effect::SignalServer(self.policy.stop_signal));
                }
            }
            Phase::Lingering => {
                self.phase = Phase::Straggling;
                self.timers.remove(&Timer::Grace);
                self.timers.insert(Timer::TreeGrace, self.now + self.policy.tree_grace);
                self.out.push(Effect::TermStragglers);
            }
            // A process that was forked while the others were killed.
            Phase::Killing | Phase::Stuck => self.out.push(Effect::KillTree),
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

    /// Ends the run: no process of the engine is left.
    fn finish(&mut self) {
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
            took_ms: self.now.saturating_sub(ending.began),
            ran_ms: self.now.saturating_sub(run.started_at),
            at: super::view::timestamp(self.now),
            stragglers: ending.stragglers,
            strangers: ending.strangers,
            unnamed: u32::try_from(ending.unnamed).unwrap_or(u32::MAX),
        });
        self.clear_timers();
        self.run_is_over(&run, reason);
    }

    /// Removes the timers of a run, which end with the run. A request may still wait for the
    /// journal, or for a program, and a config may still be kept: those timers stay.
    pub(super) fn clear_timers(&mut self) {
        let goes_on = |timer: &Timer| {
            matches!(timer, Timer::Journal | Timer::Prepare | Timer::Upgrade | Timer::Keep)
        };
        self.timers.retain(|timer, _| goes_on(timer));
    }

    // Decisions at the end of a run: end, stay stopped, hold or restart.

    pub(super) fn run_is_over(&mut self, run: &Run, reason: ExitReason) {
        if self.terminating {
            self.phase = Phase::Stopped;
            self.record();
            self.end(self.exit_code(reason));
        } else if self.intent.desired == Desired::Stopped {
            self.phase = Phase::Stopped;
            self.record_end();
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
            self.hold(Held { code: HeldCode::StartFailed, message });
        } else {
            self.ended_by_itself();
        }
    }

    /// Applies the policy for an end without a request.
    pub(super) fn ended_by_itself(&mut self) {
        let message = format!("the engine {}", self.how_it_ended());
        self.by_policy(Held { code: HeldCode::EndedByItself, message });
    }

    /// Applies the policy for an end, or for a failed start, without a request.
    pub(super) fn by_policy(&mut self, held: Held) {
        match self.policy.on_exit {
            OnExit::Exit => self.end_failed(held),
            OnExit::Hold => self.hold(to_be_started(held)),
            OnExit::Restart => self.restart_later(held),
        }
    }

    /// Like [`Self::by_policy`], for a start that failed because of a condition that may be over soon, such
    /// as a full disk. The start is retried and does not count: nobody may be there to request it.
    pub(super) fn wait_out(&mut self, held: Held) {
        match self.policy.on_exit {
            OnExit::Exit => self.end_failed(held),
            OnExit::Hold | OnExit::Restart => self.back_off(Limits::MAX_BACKOFF, held),
        }
    }

    /// Ends the manager because the engine does not run, and keeps the reason.
    fn end_failed(&mut self, failure: Held) {
        self.failure = Some(failure);
        self.phase = Phase::Failed;
        self.record();
        self.end(self.own_code.unwrap_or(1));
    }

    fn restart_later(&mut self, held: Held) {
        self.own_ends.retain(|ended| ended + Limits::RESTART_WINDOW > self.now);
        self.own_ends.push(self.now);
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
                self.hold(to_be_started(held));
            } else {
                // No client could request a start, so only the container's restart policy is left.
                self.end_failed(held);
            }
            return;
        }
        let wait = backoff(ends, self.policy.seed.wrapping_add(self.starts));
        self.back_off(wait, held);
    }

    fn back_off(&mut self, wait: Millis, held: Held) {
        self.failure = Some(held);
        self.phase = Phase::Backoff;
        self.record();
        self.timers.insert(Timer::Backoff, self.now + wait);
    }

    /// Waits for a request, also after a restart of the container.
    pub(super) fn hold(&mut self, held: Held) {
        self.phase = Phase::Failed;
        self.clear_timers();
        self.amend(|intent| intent.held = Some(held.clone()));
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
