//! A drain ahead of a stop: the engine serves on, but is not ready for a short time. If no stop comes,
//! it is ready again by itself: nothing is decided yet, so nothing is written down.

use super::sequence::Verdict;
use super::{Effect, Lifecycle, Limits, Millis, Phase, Request, Timer};
use stayput_api::{Accepted, DrainRequest, Refusal, StopRequest};

impl Lifecycle {
    pub(super) fn drain_requested(
        &mut self,
        now: Millis,
        request: DrainRequest,
        out: &mut Vec<Effect>,
    ) {
        let reply = self.drain_ahead(now, request);
        out.push(Effect::Reply(reply));
    }

    /// Begins a drain. An engine that does not run is not ready either: there is nothing to do.
    fn drain_ahead(&mut self, now: Millis, request: DrainRequest) -> Result<Accepted, Refusal> {
        let DrainRequest { sequence, pod } = request;
        // It is judged as the stop that follows it, so that a late one is refused.
        let stop = Request::Stop(StopRequest { sequence, pod, ..StopRequest::default() });
        let verdict = self.judge(&stop)?;
        let is_new = sequence.is_none_or(|sequence| sequence > self.drained);
        if let Verdict::Fresh(fresh) = verdict
            && is_new
            && self.phase == Phase::Running
        {
            self.drained = fresh;
            self.timers.insert(Timer::Drain, now + Limits::DRAIN_AHEAD);
        }
        Ok(Accepted { sequence: self.intent.fencing.sequence, done: true })
    }

    /// True if the engine runs, and is not ready on purpose.
    pub fn drains_ahead(&self) -> bool {
        self.phase == Phase::Running && self.timers.contains_key(&Timer::Drain)
    }

    /// Ends the drain, because the engine is to run on: it is ready again at once.
    pub(super) fn end_drain_ahead(&mut self) {
        if self.drains_ahead() {
            self.timers.remove(&Timer::Drain);
        }
    }
}
