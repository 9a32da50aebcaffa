//! Stop and start requests: the sequence is checked first, then what the phase allows.

use super::commit::{Act, Deciding, Pending};
use super::sequence::Verdict;
use super::{Effect, Held, HeldCode, Lifecycle, Millis, Phase, Request};
use stayput_api::{Accepted, Code, ConfigChoice, Desired, Refusal, StartRequest, StopRequest};

impl Lifecycle {
    pub(super) fn stop_requested(
        &mut self,
        now: Millis,
        request: StopRequest,
        by: String,
        out: &mut Vec<Effect>,
    ) {
        let drain = request.drain;
        let act = Act::Stop { grace: request.grace, drain, exit: request.exit };
        let Some((pending, verdict)) = self.fenced(now, Request::Stop(request), by, out) else {
            return;
        };
        match verdict {
            Verdict::Retry => {
                // Nothing to write: a container that is killed meanwhile has no engine to drain.
                if self.intent.desired == Desired::Stopped {
                    self.shorten_drain(now, drain);
                }
                out.push(Effect::Reply(self.outcome(&pending)));
            }
            Verdict::Fresh(_) => self.commit(now, pending.accepted(Desired::Stopped), act, out),
        }
    }

    pub(super) fn start_requested(
        &mut self,
        now: Millis,
        request: StartRequest,
        by: String,
        out: &mut Vec<Effect>,
    ) {
        let fenced = self.fenced(now, Request::Start(request.clone()), by, out);
        let Some((pending, verdict)) = fenced else {
            return;
        };
        if verdict == Verdict::Retry {
            out.push(Effect::Reply(self.outcome(&pending)));
            return;
        }
        if self.terminating {
            let refusal = Refusal::new(
                Code::Terminating,
                "the manager is ending; send the request to the one in the next container",
            );
            self.refuse(now, pending, refusal, out);
            return;
        }
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Backoff => {
                self.prepare_requested(now, &request, out);
                self.deciding = Some(Deciding::Verifying(pending));
            }
            Phase::Starting | Phase::Running => match self.runs_as_asked(&request) {
                Ok(()) => {
                    let proposed = pending.accepted(Desired::Running);
                    self.commit(now, proposed, Act::Acknowledge, out);
                }
                Err(refusal) => {
                    self.refuse(now, pending, refusal, out);
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
                self.refuse(now, pending, refusal, out);
            }
            Phase::Stuck => self.refuse(now, pending, stuck(), out),
        }
    }

    /// Checks pod and sequence; answers at once if the request is refused or was answered before.
    fn fenced(
        &mut self,
        now: Millis,
        request: Request,
        by: String,
        out: &mut Vec<Effect>,
    ) -> Option<(Pending, Verdict)> {
        match self.judge(&request) {
            Ok(verdict) => {
                let sequence = match verdict {
                    Verdict::Fresh(sequence) => sequence,
                    Verdict::Retry => self.intent.fencing.sequence,
                };
                let request = request.with_sequence(sequence);
                let before = self.intent.clone();
                Some((Pending { sequence, request, by, at: now, before }, verdict))
            }
            Err(refusal) => {
                out.push(Effect::Reply(Err(refusal)));
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
