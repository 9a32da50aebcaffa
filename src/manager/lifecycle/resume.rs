//! The start that a stop with `resumeAfter` asks for: if its sender is lost, the node is down for
//! minutes and not for as long as the sender is away.
//!
//! Only an accepted request cancels it. A refused one changes nothing here either: its sender may
//! be lost next, and the engine would then stay down for ever. A sender that lives and wants the
//! engine to stay down sends another stop.

use super::commit::Deciding;
use super::timestamp;
use super::{Effect, Intent, Lifecycle, Limits, Millis, Origin, Phase, Prepared, Timer};
use stayput_api::{ConfigChoice, Desired, Refusal};

/// A start that was due and could not be made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RefusedResume {
    pub(super) message: String,
    pub(super) retry_at: Millis,
}

impl Intent {
    /// True if another caller has said that the engine is to stay stopped, by a stop without
    /// `resumeAfter`. A stop with it then stops nothing, and must not be followed by a start: it
    /// may have been sent before that stop.
    pub(super) fn is_kept_stopped_by_another(&self, caller: &str) -> bool {
        let is_other = self.asked.as_ref().is_some_and(|asked| asked.by != caller);
        self.desired == Desired::Stopped && self.resume.is_none() && is_other
    }

    /// Limits the wait for the start after a boot. The instant on disk counts, and only a clock
    /// that was set back would make the wait longer than requested. True if the instant changed.
    pub(super) fn limit_resume(&mut self, now: Millis) -> bool {
        let Some(resume) = &mut self.resume else { return false };
        let latest = now.saturating_add(resume.after);
        let later = resume.at > latest;
        resume.at = resume.at.min(latest);
        later
    }
}

impl Lifecycle {
    /// Sets the timer from the state. A start that becomes due while the engine is still being
    /// stopped, or while a request is decided, is made right after that.
    pub(super) fn follow_resume(&mut self) {
        let Some(resume) = &self.intent.resume else {
            self.resume_refused = None;
            self.timers.remove(&Timer::Resume);
            return;
        };
        if self.phase == Phase::Stopped
            && !self.is_deciding()
            && !self.terminating
            && !self.exit_after_stop
        {
            let refused = self.resume_refused.as_ref();
            let due = refused.map_or(resume.at, |refused| refused.retry_at);
            self.timers.insert(Timer::Resume, due);
        } else {
            self.timers.remove(&Timer::Resume);
        }
    }

    /// Puts the start off, because the manager was frozen or away: no caller could reach it, and earlier
    /// requests may be out of date, as another config may be wanted by now. True if the start was put off.
    pub(super) fn put_resume_off(&mut self, now: Millis, out: &mut Vec<Effect>) -> bool {
        let earliest = now + Limits::RESUME_GRACE;
        let is_refused = self.resume_refused.is_some();
        let is_early = |resume: &&mut super::Resume| !is_refused && resume.at < earliest;
        let Some(resume) = self.intent.resume.as_mut().filter(is_early) else { return false };
        resume.at = earliest;
        self.persist(out);
        true
    }

    /// Makes the start that is due. With a checksum, the mounted config is tried first, then the kept one.
    pub(super) fn resume_due(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let Some(resume) = &self.intent.resume else { return };
        let expected = resume.checksum.clone();
        self.deciding = Some(Deciding::Resuming { mounted: None });
        if expected.is_some() {
            self.prepare_exactly(now, ConfigChoice::Mounted, expected, out);
        } else {
            self.prepare_own(now, out);
        }
    }

    /// Spawns the engine without waiting for the journal: until it is on disk, the next container
    /// finds the stop and makes the same start.
    pub(super) fn resume_on(&mut self, prepared: Prepared, out: &mut Vec<Effect>) {
        let before = Box::new(self.intent.clone());
        self.intent.desired = Desired::Running;
        self.intent.asked = None;
        self.intent.resume = None;
        self.intent.unproven = true;
        self.intent.config = prepared.choice;
        self.intent.checksum.clone_from(&prepared.checksum);
        self.persist(out);
        self.deciding = Some(Deciding::Spawning {
            origin: Origin::Resume(before),
            pending: None,
            prepared: prepared.clone(),
            config_changed: false,
        });
        out.push(Effect::Spawn(prepared));
    }

    /// Takes back a start whose config changed before the spawn: the start is still due.
    pub(super) fn resume_again(&mut self, before: Intent, out: &mut Vec<Effect>) {
        self.intent = before;
        self.persist(out);
    }

    /// Retries a start later, because there was no process or no memory for the spawn: the sender
    /// of the stop may be lost.
    pub(super) fn resume_later(
        &mut self,
        now: Millis,
        before: Intent,
        error: &str,
        out: &mut Vec<Effect>,
    ) {
        let at = before.resume.as_ref().map_or_else(String::new, |resume| timestamp(resume.at));
        let message =
            format!("the engine was to be started again at {at}, but {error}; it is tried again");
        self.resume_again(before, out);
        let retry_at = now + Limits::RESUME_RETRY_INTERVAL;
        self.resume_refused = Some(RefusedResume { message, retry_at });
    }

    /// Handles a config that cannot be used. If none can, the start is retried when the mounted
    /// config changes, and from time to time: a full disk may be the cause.
    pub(super) fn resume_refused(
        &mut self,
        now: Millis,
        mounted: Option<String>,
        refusal: Refusal,
        out: &mut Vec<Effect>,
    ) {
        let Some(resume) = &self.intent.resume else { return };
        let expected = resume.checksum.clone();
        if mounted.is_none() && expected.is_some() {
            self.deciding = Some(Deciding::Resuming { mounted: Some(refusal.message) });
            self.prepare_exactly(now, ConfigChoice::LastGood, expected, out);
            return;
        }
        let at = timestamp(resume.at);
        let why = match mounted {
            Some(mounted) => format!("{mounted}; nor on the last good config: {}", refusal.message),
            None => refusal.message,
        };
        let message = format!(
            "the engine was to be started again at {at}, but not on the mounted config: {why}; mount \
             the expected config, or start the engine by a request"
        );
        let retry_at = now + Limits::RESUME_RETRY_INTERVAL;
        self.resume_refused = Some(RefusedResume { message, retry_at });
    }

    /// True if a change of the mounted config is awaited for a start that is due.
    pub fn awaits_config(&self) -> bool {
        self.resume_refused.is_some()
    }

    pub(super) fn resume_on_changed_config(&mut self) {
        if let Some(refused) = &mut self.resume_refused {
            refused.retry_at = 0;
        }
    }
}
