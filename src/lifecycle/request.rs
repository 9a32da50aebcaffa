//! Stop and start requests: fence first, then what the phase allows.

use super::commit::{Act, Deciding, Pending};
use super::fence::Verdict;
use super::{Accepted, Body, Effect, Lifecycle, Millis, Phase, Refusal};
use crate::api::{Code, ConfigChoice, Desired, StartRequest, StopRequest};

impl Lifecycle {
    pub(super) fn stop_requested(
        &mut self,
        now: Millis,
        request: StopRequest,
        by: String,
        out: &mut Vec<Effect>,
    ) {
        let act = Act::Stop { grace: request.grace, drain: request.drain };
        let Some((pending, verdict)) = self.fenced(now, Body::Stop(request), by, out) else {
            return;
        };
        match verdict {
            Verdict::Retry => {
                let done = self.is_stopped_for_good();
                out.push(Effect::Reply(Ok(Accepted { sequence: pending.sequence, done })));
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
        let body = Body::Start(request.clone());
        let Some((pending, verdict)) = self.fenced(now, body, by, out) else {
            return;
        };
        if verdict == Verdict::Retry {
            let sequence = pending.sequence;
            out.push(Effect::Reply(self.started().map(|done| Accepted { sequence, done })));
            return;
        }
        if self.terminating {
            let refusal = Refusal::new(
                Code::Terminating,
                "the manager was told to end; the engine starts with the next container",
            );
            self.commit(now, pending.refused(), Act::Refuse(refusal), out);
            return;
        }
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Backoff => {
                out.push(Effect::Prepare {
                    choice: request.config,
                    expected: request.checksum.clone(),
                });
                self.deciding = Some(Deciding::Verifying(pending));
            }
            Phase::Starting | Phase::Running => match self.runs_as_asked(&request) {
                Ok(()) => {
                    let proposed = pending.accepted(Desired::Running);
                    self.commit(now, proposed, Act::Acknowledge, out);
                }
                Err(refusal) => {
                    self.commit(now, pending.refused(), Act::Refuse(refusal), out);
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
                self.commit(now, pending.refused(), Act::Refuse(refusal), out);
            }
            Phase::Stuck => {
                let refusal = Refusal::new(
                    Code::Stuck,
                    "a process of the engine survives KILL (see why); an engine started beside \
                     it would fight for the same data",
                );
                self.commit(now, pending.refused(), Act::Refuse(refusal), out);
            }
        }
    }

    /// The pod and the sequence; answers at once where the request goes no further.
    fn fenced(
        &mut self,
        now: Millis,
        body: Body,
        by: String,
        out: &mut Vec<Effect>,
    ) -> Option<(Pending, Verdict)> {
        let judged = self.for_this_pod(&body).and_then(|()| self.intent.fence.judge(&body));
        match judged {
            Ok(verdict) => {
                let sequence = match verdict {
                    Verdict::Fresh(sequence) => sequence,
                    Verdict::Retry => self.intent.fence.sequence,
                };
                let body = body.with_sequence(sequence);
                let before = self.intent.clone();
                Some((Pending { sequence, body, by, at: now, before }, verdict))
            }
            Err(refusal) => {
                out.push(Effect::Reply(Err(refusal)));
                None
            }
        }
    }

    fn for_this_pod(&self, body: &Body) -> Result<(), Refusal> {
        match (body.pod(), &self.policy.pod) {
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

    /// Whether the running engine is what a start asks for.
    fn runs_as_asked(&self, request: &StartRequest) -> Result<(), Refusal> {
        let Some(run) = &self.run else {
            return Ok(());
        };
        let wrong = |detail| Err(Refusal::new(Code::WrongConfig, detail));
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

    /// What an accepted start has come to.
    pub(super) fn started(&self) -> Result<bool, Refusal> {
        match self.phase {
            Phase::Running => Ok(true),
            Phase::Failed => Err(Refusal::new(Code::StartFailed, self.held_message())),
            Phase::Stopped
            | Phase::Backoff
            | Phase::Starting
            | Phase::Draining
            | Phase::Signalled
            | Phase::Lingering
            | Phase::Straggling
            | Phase::Dumping
            | Phase::Killing
            | Phase::Stuck => Ok(false),
        }
    }

    /// Stopped, and a container restart would not change that.
    pub(super) fn is_stopped_for_good(&self) -> bool {
        self.phase == Phase::Stopped && self.intent.desired == Desired::Stopped && self.is_durable()
    }

    /// TERM to the manager: ends the engine, then the manager. It beats a start in flight.
    pub(super) fn terminate(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let first = !std::mem::replace(&mut self.terminating, true);
        if first {
            self.drop_start_in_flight(out);
        }
        match self.phase {
            Phase::Stopped => out.push(Effect::Exit(0)),
            Phase::Failed | Phase::Backoff => {
                out.push(Effect::Exit(self.own_code.unwrap_or(0)));
            }
            Phase::Starting | Phase::Running => {
                self.begin_stop(now, self.policy.drain, self.policy.termination_grace, out);
            }
            Phase::Draining | Phase::Signalled | Phase::Lingering if first => {
                self.shorten_grace(now, self.policy.termination_grace);
            }
            // Whoever sends it twice is in a hurry.
            Phase::Draining => {
                self.shorten_grace(now, Some(self.policy.tree_grace));
                self.drain_over(now, out);
            }
            Phase::Signalled | Phase::Lingering => {
                self.shorten_grace(now, Some(self.policy.tree_grace));
            }
            Phase::Straggling | Phase::Dumping | Phase::Killing => {}
            Phase::Stuck => out.push(Effect::Exit(137)),
        }
    }
}
