//! The end of a run: the leader ends, then the processes it leaves behind, until no process is
//! left.

use super::{Effect, ExitStatus, Lifecycle, Millis, OnExit, Phase, Timer, Tree};
use stayput_api::{Exit, ExitReason, Process};

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
            // Ended by the signal, or by a launcher that reports its server's death as its own
            // code.
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
            self.finish(now, out);
        } else {
            out.push(Effect::ScanTree);
        }
    }

    /// Handles the result of a scan: the remaining processes of the engine.
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
        ending.name(tree.stragglers, tree.strangers);
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
                    // Its launcher ended by itself: the server will end by itself too, and gets the
                    // stop signal as well.
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
            // A process that was forked while the others were killed.
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

    /// Ends the run: no process of the engine is left.
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
            unnamed: u32::try_from(ending.unnamed).unwrap_or(u32::MAX),
        });
        self.clear_timers();
        self.run_is_over(now, &run, reason, out);
    }

    /// Removes the timers of a run, which end with the run. A request may still wait for the
    /// journal, or for a program, and a config may still be kept: those timers stay.
    pub(super) fn clear_timers(&mut self) {
        let goes_on = |timer: &Timer| {
            matches!(timer, Timer::Journal | Timer::Prepare | Timer::Upgrade | Timer::Keep)
        };
        self.timers.retain(|timer, _| goes_on(timer));
    }
}
