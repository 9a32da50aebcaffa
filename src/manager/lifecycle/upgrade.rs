//! Another version of the manager takes over: it is executed in the place of this one, and the
//! engine runs on. Only at rest, so that little has to be handed over, and no unfinished work.
//!
//! The new program is first executed beside this one and says whether it can take over. Then the
//! server closes its connections, so that answers are complete. Until the program is executed, the
//! state may still change, so rest is checked again before each step.

use serde::{Deserialize, Serialize};

use super::commit::Deciding;
use super::{Effect, Intent, Lifecycle, Limits, Millis, Phase, Run, Timer};
use stayput_api::{Accepted, Code, Exit, Refusal};

/// Progress of an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Upgrading {
    /// The new program is asked whether it can take over. The request has no answer yet.
    Checking,
    /// The new program can take over. The server closes its connections.
    Closing,
}

/// Answer of the new program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checked {
    /// The program can take over.
    CanTakeOver,
    /// The program is the one that runs already.
    Same,
}

/// State that a lifecycle takes over from the one before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TakenOver {
    /// The requested state; on disk.
    pub intent: Intent,
    /// Exit of the last run.
    pub last_exit: Option<Exit>,
    /// The run of the engine, which is ready.
    pub run: Option<Run>,
    /// Number of times that the engine was spawned.
    pub starts: u64,
    /// Times when runs ended by themselves.
    pub own_ends: Vec<Millis>,
    /// Shell code of the last run, for the manager's own exit code.
    pub own_code: Option<i32>,
    /// Time since when the state has been the same.
    pub since: Millis,
}

impl Lifecycle {
    pub(super) fn upgrade_requested(&mut self) {
        if let Some(refusal) = self.why_not_at_rest() {
            self.out.push(Effect::Reply(Err(refusal)));
            return;
        }
        self.deciding = Some(Deciding::Upgrading(Upgrading::Checking));
        self.timers.insert(Timer::Upgrade, self.now + Limits::UPGRADE_TIMEOUT);
        self.out.push(Effect::CheckProgram);
    }

    pub(super) fn program_checked(&mut self, result: Result<Checked, String>) {
        if self.deciding != Some(Deciding::Upgrading(Upgrading::Checking)) {
            return;
        }
        self.end_upgrade();
        let sequence = self.intent.fencing.sequence;
        match (result, self.why_not_at_rest()) {
            (Err(message), _) => {
                self.out.push(Effect::Reply(Err(Refusal::new(Code::UpgradeRefused, message))));
            }
            (Ok(Checked::Same), _) => {
                self.out.push(Effect::Reply(Ok(Accepted { sequence, done: true })));
            }
            (Ok(Checked::CanTakeOver), Some(refusal)) => self.out.push(Effect::Reply(Err(refusal))),
            (Ok(Checked::CanTakeOver), None) => {
                self.deciding = Some(Deciding::Upgrading(Upgrading::Closing));
                self.timers.insert(Timer::Upgrade, self.now + Limits::UPGRADE_TIMEOUT);
                self.out.push(Effect::Reply(Ok(Accepted { sequence, done: false })));
                self.out.push(Effect::CloseServer);
            }
        }
    }

    pub(super) fn server_closed(&mut self) {
        if self.deciding != Some(Deciding::Upgrading(Upgrading::Closing)) {
            return;
        }
        match self.why_not_at_rest() {
            None => self.out.push(Effect::Execute),
            Some(refusal) => self.not_executed(refusal.message),
        }
    }

    /// Ends the upgrade: this manager goes on.
    pub(super) fn not_executed(&mut self, error: String) {
        if self.deciding == Some(Deciding::Upgrading(Upgrading::Closing)) {
            self.end_upgrade();
            self.out.push(Effect::OpenServer(error));
        }
    }

    pub(super) fn upgrade_timed_out(&mut self) {
        let limit = Limits::UPGRADE_TIMEOUT / 1000;
        match self.deciding {
            Some(Deciding::Upgrading(Upgrading::Checking)) => {
                let message =
                    format!("the program did not say within {limit} s that it can take over");
                self.out.push(Effect::EndCheck);
                self.program_checked(Err(message));
            }
            Some(Deciding::Upgrading(Upgrading::Closing)) => {
                self.not_executed(format!("the server did not close within {limit} s"));
            }
            Some(
                Deciding::Preparing(_)
                | Deciding::Resuming { .. }
                | Deciding::Verifying(_)
                | Deciding::Committing { .. }
                | Deciding::Spawning { .. },
            )
            | None => {}
        }
    }

    /// Ends an upgrade because of TERM while its request has no answer yet.
    pub(super) fn drop_check(&mut self) {
        self.end_upgrade();
        self.out.push(Effect::EndCheck);
        let message = "the manager received TERM before the other program was executed";
        self.out.push(Effect::Reply(Err(Refusal::new(Code::Terminating, message))));
    }

    fn end_upgrade(&mut self) {
        self.deciding = None;
        self.timers.remove(&Timer::Upgrade);
    }

    /// Reason why another program cannot take over now, if there is one. Only facts that hold at
    /// rest are handed over.
    fn why_not_at_rest(&self) -> Option<Refusal> {
        if self.terminating || self.exit.is_some() || self.exit_after_stop {
            let message = "the manager is ending; the next container has its image's program";
            return Some(Refusal::new(Code::Terminating, message));
        }
        let engine = match self.phase {
            Phase::Stopped | Phase::Failed => None,
            Phase::Running if self.timers.contains_key(&Timer::Prove) => {
                Some("its config is not the last good one yet: that takes a minute")
            }
            // It is not handed over: the engine would be ready again while its stop is prepared.
            Phase::Running if self.drains_ahead() => Some("a stop of it is prepared"),
            Phase::Running => None,
            Phase::Starting | Phase::Backoff => Some("it is being started"),
            Phase::Draining
            | Phase::Signalled
            | Phase::Lingering
            | Phase::Straggling
            | Phase::Dumping
            | Phase::Killing
            | Phase::Stuck => Some("it is being stopped"),
        };
        let why = match engine {
            Some(engine) => engine,
            // The thread that keeps it would end with this program.
            None if self.timers.contains_key(&Timer::Keep) => "its config is being kept",
            None if self.intent.fencing.unknown => "its journal cannot be read",
            None if !self.journal.is_on_disk() => "the journal is being written, or cannot be",
            None => return None,
        };
        let message = format!(
            "the manager is upgraded only while the engine runs, is stopped or is held, and now \
             {why}; try again later"
        );
        Some(Refusal::new(Code::NotAtRest, message))
    }

    /// State that another program takes over.
    pub fn hand_over(&self) -> TakenOver {
        TakenOver {
            intent: self.intent.clone(),
            last_exit: self.last_exit.clone(),
            run: self.run.clone(),
            starts: self.starts,
            own_ends: self.own_ends.clone(),
            own_code: self.own_code,
            since: self.since,
        }
    }

    /// Goes on from the state that the previous program handed over.
    pub(super) fn take_over(&mut self, taken: TakenOver) {
        let TakenOver { intent, last_exit, run, starts, own_ends, own_code, since } = taken;
        self.phase = match (&run, &intent.held) {
            (Some(_), _) => Phase::Running,
            (None, Some(_)) => Phase::Failed,
            (None, None) => Phase::Stopped,
        };
        (self.intent, self.last_exit, self.run) = (intent, last_exit, run);
        (self.starts, self.own_ends, self.own_code, self.since) =
            (starts, own_ends, own_code, since);
        // It is on disk, so it is durable. Written once more, for the id of this boot.
        self.record();
        if self.run.is_some() {
            self.out.push(Effect::ScanTree);
        }
    }
}
