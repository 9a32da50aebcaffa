//! Stop and start requests: the sequence is checked first, then what the phase allows. And the start
//! that a stop with `resumeAfter` asks for.

use super::commit::{Act, Deciding, Pending};
use super::intent::Verdict;
use super::{
    Effect, Held, HeldCode, Intent, Lifecycle, Limits, Millis, Origin, Phase, Prepared, Request,
    Timer, timestamp,
};
use stayput_api::{Accepted, Code, ConfigChoice, Desired, Refusal, StartRequest, StopRequest};

impl Lifecycle {
    pub(super) fn stop_requested(&mut self, request: StopRequest, by: String) {
        let drain = request.drain;
        let act = Act::Stop { grace: request.grace, drain, exit: request.exit };
        let Some((pending, verdict)) = self.fenced(Request::Stop(request), by) else {
            return;
        };
        match verdict {
            Verdict::Retry => {
                // Nothing to write: a container that is killed meanwhile has no engine to drain.
                if self.intent.desired == Desired::Stopped {
                    self.shorten_drain(drain);
                }
                self.out.push(Effect::Reply(self.outcome(&pending)));
            }
            Verdict::Fresh(_) => self.commit(pending.accepted(Desired::Stopped), act),
        }
    }

    pub(super) fn start_requested(&mut self, request: StartRequest, by: String) {
        let fenced = self.fenced(Request::Start(request.clone()), by);
        let Some((pending, verdict)) = fenced else {
            return;
        };
        if verdict == Verdict::Retry {
            self.out.push(Effect::Reply(self.outcome(&pending)));
            return;
        }
        if self.terminating {
            let refusal = Refusal::new(
                Code::Terminating,
                "the manager is ending; send the request to the one in the next container",
            );
            self.refuse(pending, refusal);
            return;
        }
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Backoff => {
                self.prepare_requested(&request);
                self.deciding = Some(Deciding::Verifying(pending));
            }
            Phase::Starting | Phase::Running => match self.runs_as_asked(&request) {
                Ok(()) => {
                    let proposed = pending.accepted(Desired::Running);
                    self.commit(proposed, Act::Acknowledge);
                }
                Err(refusal) => {
                    self.refuse(pending, refusal);
                }
            },
            Phase::Draining
            | Phase::Signalled
            | Phase::Lingering
            | Phase::Straggling
            | Phase::Dumping
            | Phase::Killing => {
                let refusal = Refusal::new(
                    Code::Stopping,
                    "the engine is being stopped; wait until it is stopped and start it then",
                );
                self.refuse(pending, refusal);
            }
            Phase::Stuck => self.refuse(pending, stuck()),
        }
    }

    /// Checks pod and sequence; answers at once if the request is refused or was answered before.
    fn fenced(&mut self, request: Request, by: String) -> Option<(Pending, Verdict)> {
        match self.judge(&request) {
            Ok(verdict) => {
                let sequence = match verdict {
                    Verdict::Fresh(sequence) => sequence,
                    Verdict::Retry => self.intent.fencing.sequence,
                };
                let request = request.with_sequence(sequence);
                let before = self.intent.clone();
                Some((Pending { sequence, request, by, at: self.now, before }, verdict))
            }
            Err(refusal) => {
                self.out.push(Effect::Reply(Err(refusal)));
                None
            }
        }
    }

    /// Judges pod and sequence of a request.
    pub(super) fn judge(&self, request: &Request) -> Result<Verdict, Refusal> {
        self.for_this_pod(request)?;
        self.needs_no_journal(request)?;
        self.intent.fencing.judge(request)
    }

    /// Refuses requests that need the journal while it is still being read. Only a start without a
    /// sequence needs none: the journal has the last sequence, so that lower ones are refused, and
    /// a stop must be written there.
    fn needs_no_journal(&self, request: &Request) -> Result<(), Refusal> {
        match request {
            _ if self.late_journal.is_none() => Ok(()),
            Request::Start(StartRequest { sequence: None, .. }) => Ok(()),
            Request::Start(_) | Request::Stop(_) => Err(Refusal::new(
                Code::JournalUnavailable,
                "the journal is not read yet, because the state directory does not answer; nothing \
                 was done. Send the request again, or repair the volume behind --state-dir; only a \
                 start without a sequence is carried out meanwhile",
            )),
        }
    }

    fn for_this_pod(&self, request: &Request) -> Result<(), Refusal> {
        match (request.pod(), &self.policy.pod) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(Refusal::new(
                Code::PodUnknown,
                "this manager does not know its pod; set STAYPUT_POD_UID from metadata.uid, or \
                 leave `pod` out",
            )),
            (Some(asked), Some(own)) if asked == own => Ok(()),
            (Some(asked), Some(own)) => Err(Refusal::new(
                Code::WrongPod,
                format!("the request is for pod {asked}, this is pod {own}"),
            )),
        }
    }

    /// Refuses a start that requests another config than the running engine has.
    fn runs_as_asked(&self, request: &StartRequest) -> Result<(), Refusal> {
        let Some(run) = &self.run else {
            return Ok(());
        };
        let wrong = |message| Err(Refusal::new(Code::WrongConfig, message));
        if request.config == ConfigChoice::LastGood && run.config != ConfigChoice::LastGood {
            return wrong("the engine runs on the mounted config; stop it first".to_owned());
        }
        match (&request.checksum, &run.checksum) {
            (None, _) => Ok(()),
            (Some(asked), Some(actual)) if asked == actual => Ok(()),
            (Some(asked), Some(actual)) => {
                wrong(format!("the engine runs with {actual}, not with {asked}; stop it first"))
            }
            (Some(_), None) => wrong(
                "the config the engine was started with is not known for certain; stop it first"
                    .to_owned(),
            ),
        }
    }

    /// Progress of an accepted request.
    pub(super) fn outcome(&self, pending: &Pending) -> Result<Accepted, Refusal> {
        let done = match &pending.request {
            Request::Stop(_) if self.intent.desired == Desired::Running => {
                return Err(Refusal::new(
                    Code::Superseded,
                    "`resumeAfter` has passed, and the engine was started again",
                ));
            }
            Request::Stop(_) => self.is_stopped_for_good(),
            Request::Start(request) => self.has_started(request)?,
        };
        Ok(Accepted { sequence: pending.sequence, done })
    }

    /// True if an accepted start is complete. The engine may have been started again since, on
    /// another config.
    fn has_started(&self, request: &StartRequest) -> Result<bool, Refusal> {
        match self.phase {
            Phase::Starting => self.runs_as_asked(request).map(|()| false),
            Phase::Running => self.runs_as_asked(request).map(|()| true),
            Phase::Failed => Err(self.failed()),
            Phase::Stuck => Err(stuck()),
            Phase::Stopped
            | Phase::Backoff
            | Phase::Draining
            | Phase::Signalled
            | Phase::Lingering
            | Phase::Straggling
            | Phase::Dumping
            | Phase::Killing => Ok(false),
        }
    }

    fn failed(&self) -> Refusal {
        let code = match &self.intent.held {
            Some(Held { code: HeldCode::SpawnFailed, .. }) => Code::SpawnFailed,
            Some(_) | None => Code::StartFailed,
        };
        Refusal::new(code, self.failure_message())
    }

    /// True if the engine is stopped, and a container restart would not change that.
    pub(super) fn is_stopped_for_good(&self) -> bool {
        self.phase == Phase::Stopped
            && self.intent.desired == Desired::Stopped
            && self.is_durable()
            && self.end_is_recorded()
    }
}

fn stuck() -> Refusal {
    Refusal::new(
        Code::Stuck,
        "a process of the engine survives KILL (see reason); an engine started beside it would \
         use the same data",
    )
}

// The start that a stop with `resumeAfter` asks for: if its sender is lost, the node is down for
// minutes and not for as long as the sender is away.
//
// Only an accepted request cancels it. A refused one changes nothing here either: its sender may
// be lost next, and the engine would then stay down for ever. A sender that lives and wants the
// engine to stay down sends another stop.

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
    pub(super) fn put_resume_off(&mut self) -> bool {
        let earliest = self.now + Limits::RESUME_GRACE;
        let is_refused = self.resume_refused.is_some();
        let is_early = |resume: &&mut super::Resume| !is_refused && resume.at < earliest;
        let Some(resume) = self.intent.resume.as_mut().filter(is_early) else { return false };
        resume.at = earliest;
        self.persist();
        true
    }

    /// Makes the start that is due. With a checksum, the mounted config is tried first, then the kept one.
    pub(super) fn resume_due(&mut self) {
        let Some(resume) = &self.intent.resume else { return };
        let expected = resume.checksum.clone();
        self.deciding = Some(Deciding::Resuming { mounted: None });
        if expected.is_some() {
            self.prepare_exactly(ConfigChoice::Mounted, expected);
        } else {
            self.prepare_own();
        }
    }

    /// Spawns the engine without waiting for the journal: until it is on disk, the next container
    /// finds the stop and makes the same start.
    pub(super) fn resume_on(&mut self, prepared: Prepared) {
        let before = Box::new(self.intent.clone());
        self.intent.desired = Desired::Running;
        self.intent.asked = None;
        self.intent.resume = None;
        self.intent.unproven = true;
        self.intent.config = prepared.choice;
        self.intent.checksum.clone_from(&prepared.checksum);
        self.persist();
        self.spawn(Origin::Resume(before), None, prepared);
    }

    /// Takes back a start whose config changed before the spawn: the start is still due.
    pub(super) fn resume_again(&mut self, before: Intent) {
        self.intent = before;
        self.persist();
    }

    /// Retries a start later, because there was no process or no memory for the spawn: the sender
    /// of the stop may be lost.
    pub(super) fn resume_later(&mut self, before: Intent, error: &str) {
        let at = before.resume.as_ref().map_or_else(String::new, |resume| timestamp(resume.at));
        let message =
            format!("the engine was to be started again at {at}, but {error}; it is tried again");
        self.resume_again(before);
        let retry_at = self.now + Limits::RESUME_RETRY_INTERVAL;
        self.resume_refused = Some(RefusedResume { message, retry_at });
    }

    /// Handles a config that cannot be used. If none can, the start is retried when the mounted
    /// config changes, and from time to time: a full disk may be the cause.
    pub(super) fn resume_refused(&mut self, mounted: Option<String>, refusal: Refusal) {
        let Some(resume) = &self.intent.resume else { return };
        let expected = resume.checksum.clone();
        if mounted.is_none() && expected.is_some() {
            self.deciding = Some(Deciding::Resuming { mounted: Some(refusal.message) });
            self.prepare_exactly(ConfigChoice::LastGood, expected);
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
        let retry_at = self.now + Limits::RESUME_RETRY_INTERVAL;
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
