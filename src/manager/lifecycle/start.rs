//! From the journal or a request to a ready engine; the config that a start is prepared on.

use serde::{Deserialize, Serialize};

use super::commit::{Act, Deciding, Pending};
use super::journal::LateJournal;
use super::upgrade::Upgrading;
use super::{
    Effect, Held, HeldCode, Intent, KeepAs, Lifecycle, Limits, Millis, Phase, Prepared, Recovered,
    Request, Timer,
};
use stayput_api::{Accepted, Code, ConfigChoice, Desired, Refusal, StartRequest};

/// Why a run was started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The start of the manager.
    Boot,
    /// A request.
    Request,
    /// A restart of an engine that had ended by itself.
    Restart,
    /// A stop with `resumeAfter`; the intent before the start.
    Resume(Box<Intent>),
}

impl Origin {
    fn is_requested(&self) -> bool {
        match self {
            Self::Request | Self::Resume(_) => true,
            Self::Boot | Self::Restart => false,
        }
    }
}

/// One life of the engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Random; also in the engine's environment.
    pub id: String,
    /// Pid of the leader.
    pub pid: u32,
    /// When the leader was spawned.
    pub started_at: Millis,
    /// Checksum of the run's config, as long as that is certain.
    pub checksum: Option<String>,
    /// Origin of the run's config.
    pub config: ConfigChoice,
    /// True if the mounted config changed while the engine read it.
    pub config_uncertain: bool,
    /// Digest of the file with the run's variables, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// True if the run was started as requested, also by a stop with `resumeAfter`, and not by
    /// itself: if it ends before it is ready, the engine is held.
    pub requested: bool,
    /// True if the engine has been ready in this run.
    pub was_ready: bool,
}

impl Lifecycle {
    pub(super) fn boot(&mut self, recovered: Recovered) {
        self.since = self.now;
        match recovered {
            Recovered::Fresh => {
                self.persist();
                self.start_unasked(Origin::Boot);
            }
            Recovered::Journal { intent, last_exit, run } => {
                self.intent = *intent;
                self.last_exit = last_exit;
                let mut changed =
                    self.intent.limit_resume(self.now) || self.journal_may_be_replaced();
                if let Some(run) = run {
                    changed |= self.ended_with_manager(&run);
                }
                if changed {
                    self.persist();
                } else {
                    // The intent was read from the disk, so it is durable.
                    self.record();
                }
                match (&self.intent.held, self.intent.desired) {
                    (Some(_), _) => self.phase = Phase::Failed,
                    (None, Desired::Stopped) => self.phase = Phase::Stopped,
                    (None, Desired::Running) => self.start_unasked(Origin::Boot),
                }
            }
            Recovered::TakenOver(taken) => self.take_over(*taken),
            Recovered::Unreadable(message) => {
                self.hold_without_journal(message);
                if self.journal_may_be_replaced() {
                    self.persist();
                }
            }
            Recovered::NotYet(message) => {
                self.late_journal = Some(LateJournal::Awaited);
                self.hold_without_journal(message);
            }
        }
    }

    /// Holds the engine without a usable journal. Nothing is written before the next request: a
    /// user may still want to read the file.
    fn hold_without_journal(&mut self, message: String) {
        self.phase = Phase::Failed;
        self.intent.fencing.unknown = true;
        self.intent.held = Some(Held { code: HeldCode::JournalUnreadable, message });
    }

    /// Begins a start without a request. A requested start that has not been ready yet is continued
    /// as that start.
    fn start_unasked(&mut self, origin: Origin) {
        if self.terminating {
            // The journal was read after TERM.
            return;
        }
        let origin = if self.intent.unproven { Origin::Request } else { origin };
        self.deciding = Some(Deciding::Preparing(origin));
        self.prepare_own();
    }

    pub(super) fn backoff_over(&mut self) {
        if self.phase != Phase::Backoff {
            return;
        }
        if self.is_deciding() {
            // A request is being decided; if it is refused, the restart is still due.
            self.timers.insert(Timer::Backoff, self.now + Limits::MIN_BACKOFF);
        } else {
            self.start_unasked(Origin::Restart);
        }
    }

    pub(super) fn spawned(&mut self, id: String, pid: u32, environment: Option<String>) {
        let Some(Deciding::Spawning { origin, pending, prepared, config_changed }) =
            self.deciding.take()
        else {
            return;
        };
        self.late_journal = None;
        self.clear_timers();
        self.failure = None;
        self.phase = Phase::Starting;
        self.starts += 1;
        self.intent.checksum.clone_from(&prepared.checksum);
        self.run = Some(Run {
            id,
            pid,
            started_at: self.now,
            checksum: prepared.checksum,
            config: prepared.choice,
            config_uncertain: false,
            environment,
            requested: origin.is_requested(),
            was_ready: false,
        });
        if !self.policy.probe {
            self.timers.insert(Timer::Settle, self.now + Limits::SETTLE_TIME);
        }
        self.record();
        if self.policy.pin_config {
            self.out.push(Effect::Keep(KeepAs::Pinned));
        }
        if config_changed {
            self.config_changed();
        }
        if let Some(pending) = pending {
            self.out.push(Effect::Reply(Ok(Accepted { sequence: pending.sequence, done: false })));
        }
        if self.terminating {
            self.stop_to_end();
        }
    }

    pub(super) fn spawn_failed(&mut self, code: i32, shortage: bool, message: String) {
        let Some(Deciding::Spawning { origin, pending, .. }) = self.deciding.take() else {
            return;
        };
        self.late_journal = None;
        self.own_code = Some(code);
        let held = Held { code: HeldCode::SpawnFailed, message: message.clone() };
        match origin {
            // Its sender is told, and may ask again.
            _ if pending.is_some() => {
                self.hold(held);
                self.out.push(Effect::Reply(Err(Refusal::new(Code::SpawnFailed, message))));
            }
            Origin::Resume(before) if shortage => self.resume_later(*before, &message),
            Origin::Boot | Origin::Restart | Origin::Request if shortage => {
                self.wait_out(held);
            }
            Origin::Request | Origin::Resume(_) => self.hold(held),
            Origin::Boot | Origin::Restart => self.by_policy(held),
        }
        if self.terminating {
            self.end_without_engine();
        }
    }

    pub(super) fn prepare_failed(&mut self, refusal: Refusal) {
        /// EX_CONFIG of sysexits.h, which the engines use for a bad config as well.
        const EX_CONFIG: i32 = 78;
        self.own_code = Some(EX_CONFIG);
        let held = Held { code: HeldCode::PrepareFailed, message: refusal.message };
        // A full disk, one that hangs, or a process that does not end may be the cause; a config that cannot
        // be read is not.
        if matches!(refusal.code, Code::StageFailed | Code::TempDirFailed | Code::SpawnFailed) {
            self.wait_out(held);
        } else {
            self.by_policy(held);
        }
    }

    pub(super) fn config_changed(&mut self) {
        self.resume_on_changed_config();
        if self.policy.staged {
            return;
        }
        if let Some(Deciding::Spawning { config_changed, .. }) = &mut self.deciding {
            *config_changed = true;
        }
        if let (Phase::Starting, Some(run)) = (self.phase, &mut self.run)
            && !run.config_uncertain
        {
            run.checksum = None;
            run.config_uncertain = true;
            self.amend(|intent| intent.checksum = None);
        }
    }

    /// Asks for the engine to be spawned on this config.
    pub(super) fn spawn(&mut self, origin: Origin, pending: Option<Pending>, prepared: Prepared) {
        self.out.push(Effect::Spawn(prepared.clone()));
        self.deciding =
            Some(Deciding::Spawning { origin, pending, prepared, config_changed: false });
    }

    pub(super) fn proved(&mut self) {
        self.timers.insert(Timer::Keep, self.now + Limits::KEEP_TIMEOUT);
        self.out.push(Effect::Keep(KeepAs::LastGood));
    }

    pub(super) fn became_ready(&mut self) {
        if self.phase != Phase::Starting {
            return;
        }
        self.phase = Phase::Running;
        self.timers.remove(&Timer::Settle);
        // When a parent has ended, descent is only known if it was seen before.
        self.out.push(Effect::ScanTree);
        if self.intent.unproven {
            let proven = |intent: &mut Intent| {
                intent.unproven = false;
                intent.unseen_ends = 0;
            };
            self.amend(proven);
        }
        if let Some(run) = &mut self.run {
            run.was_ready = true;
            if self.policy.keep_last_good
                && run.config == ConfigChoice::Mounted
                && run.checksum.is_some()
            {
                self.out.push(Effect::Keep(KeepAs::Candidate));
                self.timers.insert(Timer::Prove, self.now + Limits::PROOF_TIME);
            }
        }
    }

    // Requests that a config is verified and staged before a start.

    pub(super) fn prepared(&mut self, result: Result<Prepared, Refusal>) {
        self.timers.remove(&Timer::Prepare);
        match (self.deciding.take(), result) {
            (Some(Deciding::Verifying(pending)), Ok(prepared)) => {
                let (pending, mut intent) = pending.accepted(Desired::Running);
                intent.config = prepared.choice;
                intent.checksum.clone_from(&prepared.checksum);
                intent.unproven = true;
                self.commit((pending, intent), Act::Spawn(prepared));
            }
            (Some(Deciding::Verifying(pending)), Err(refusal)) => {
                self.refuse(pending, refusal);
            }
            (Some(Deciding::Preparing(origin)), Ok(prepared)) => self.spawn(origin, None, prepared),
            (Some(Deciding::Preparing(_)), Err(refusal)) => {
                self.prepare_failed(refusal);
            }
            (Some(Deciding::Resuming { .. }), Ok(prepared)) => self.resume_on(prepared),
            (Some(Deciding::Resuming { mounted }), Err(refusal)) => {
                self.resume_refused(mounted, refusal);
            }
            // TERM has cancelled the start that this config was prepared for.
            (
                other @ (Some(
                    Deciding::Committing { .. }
                    | Deciding::Upgrading(_)
                    | Deciding::Spawning { .. },
                )
                | None),
                Ok(_) | Err(_),
            ) => self.deciding = other,
        }
    }

    /// Prepares again, because the mounted config is no longer the verified one.
    pub(super) fn config_outdated(&mut self) {
        self.deciding = match self.deciding.take() {
            Some(Deciding::Spawning { pending: Some(pending), .. }) => {
                Some(Deciding::Verifying(pending))
            }
            Some(Deciding::Spawning { origin: Origin::Resume(before), .. }) => {
                self.resume_again(*before);
                if self.terminating {
                    self.end_without_engine();
                }
                return;
            }
            Some(Deciding::Spawning { origin, pending: None, .. }) => {
                Some(Deciding::Preparing(origin))
            }
            other => {
                self.deciding = other;
                return;
            }
        };
        if self.terminating {
            self.drop_start_in_flight();
            self.end_without_engine();
            return;
        }
        let is_late = |since: Millis| since + Limits::PREPARE_TIMEOUT <= self.now;
        if self.preparing_since.is_some_and(is_late) {
            let message = format!(
                "the config has changed for {} s each time that it was verified; end what writes it \
                 again and again, or copy it for the engine (--stage)",
                Limits::PREPARE_TIMEOUT / 1000
            );
            self.prepared(Err(Refusal::new(Code::StageFailed, message)));
            return;
        }
        match &self.deciding {
            Some(Deciding::Verifying(Pending { request: Request::Start(request), .. })) => {
                let request = request.clone();
                self.prepare_requested(&request);
            }
            Some(_) | None => self.prepare_own(),
        }
    }

    /// Requests the config that a start request asks for.
    pub(super) fn prepare_requested(&mut self, request: &StartRequest) {
        self.prepare_exactly(request.config, request.checksum.clone());
    }

    /// Requests this config, and no pinned one.
    pub(super) fn prepare_exactly(&mut self, choice: ConfigChoice, expected: Option<String>) {
        self.prepare(Effect::Prepare { choice, expected, pinned: None });
    }

    /// Requests the config of a start without a request.
    pub(super) fn prepare_own(&mut self) {
        let Intent { config: choice, checksum, .. } = &self.intent;
        let pinned = checksum.clone().filter(|_| self.policy.pin_config);
        self.prepare(Effect::Prepare { choice: *choice, expected: None, pinned });
    }

    /// Requests that a config is verified and staged, within a time limit.
    fn prepare(&mut self, effect: Effect) {
        self.preparing_since.get_or_insert(self.now);
        self.timers.insert(Timer::Prepare, self.now + Limits::PREPARE_TIMEOUT);
        self.out.push(effect);
    }

    /// Gives up a preparation: a hung mount or staging directory must not hold requests for ever. A
    /// later answer is ignored.
    pub(super) fn prepare_timed_out(&mut self) {
        let message = format!(
            "the config was not verified and staged within {} s: a volume behind --config, --stage or \
             --tmp-dir does not answer",
            Limits::PREPARE_TIMEOUT / 1000
        );
        self.prepared(Err(Refusal::new(Code::StageFailed, message)));
    }

    /// Cancels, after TERM, a start that was not spawned yet. Its acceptance may be on disk already, so the
    /// refusal is written, as every other one: the next container must decide it anew.
    pub(super) fn drop_start_in_flight(&mut self) {
        match self.deciding.take() {
            Some(Deciding::Preparing(_) | Deciding::Resuming { .. }) => {}
            Some(
                Deciding::Verifying(pending)
                | Deciding::Committing { pending, act: Act::Spawn(_), .. },
            ) => {
                let refusal = Refusal::new(
                    Code::Terminating,
                    "the manager received TERM before the engine was spawned",
                );
                self.refuse(pending, refusal);
            }
            Some(Deciding::Upgrading(Upgrading::Checking)) => self.drop_check(),
            other @ (Some(
                Deciding::Committing { .. } | Deciding::Upgrading(_) | Deciding::Spawning { .. },
            )
            | None) => {
                self.deciding = other;
            }
        }
    }
}
