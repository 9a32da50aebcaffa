//! Helpers for the scenarios.

use super::world::World;
use crate::lifecycle::{Effect, Event, ExitStatus, OnExit, Phase, Policy, Request};
use stayput_api::{Accepted, Code, ConfigChoice, Refusal, Span, StartRequest, StopRequest};

/// The usual policy with this `on_exit`.
pub(super) fn on_exit(on_exit: OnExit) -> Policy {
    Policy { on_exit, ..Policy::default() }
}

/// `{"sequence": …}` to `/es/stop`; 0 leaves it out.
pub(super) fn stop(sequence: u64) -> Request {
    Request::Stop(StopRequest { sequence: numbered(sequence), ..StopRequest::default() })
}

/// A stop with this grace and this drain, in milliseconds.
pub(super) fn stop_within(sequence: u64, grace: Option<u64>, drain: Option<u64>) -> Request {
    Request::Stop(StopRequest {
        sequence: numbered(sequence),
        grace: grace.map(Span),
        drain: drain.map(Span),
        ..StopRequest::default()
    })
}

/// A stop that is followed by a start after so many milliseconds, on the config with this checksum.
pub(super) fn stop_resuming(sequence: u64, after: u64, checksum: Option<&str>) -> Request {
    Request::Stop(StopRequest {
        sequence: numbered(sequence),
        resume_after: Some(Span(after)),
        resume_checksum: checksum.map(str::to_owned),
        ..StopRequest::default()
    })
}

/// A stop after which the manager is to end.
pub(super) fn stop_and_exit(sequence: u64) -> Request {
    let exit = true;
    Request::Stop(StopRequest { sequence: numbered(sequence), exit, ..StopRequest::default() })
}

/// `{"sequence": …}` to `/es/start`; 0 leaves it out.
pub(super) fn start(sequence: u64) -> Request {
    Request::Start(StartRequest { sequence: numbered(sequence), ..StartRequest::default() })
}

/// A start on the config with this checksum.
pub(super) fn start_with(sequence: u64, checksum: &str) -> Request {
    Request::Start(StartRequest {
        sequence: numbered(sequence),
        checksum: Some(checksum.to_owned()),
        ..StartRequest::default()
    })
}

/// A start on the kept config.
pub(super) fn start_last_good(sequence: u64) -> Request {
    Request::Start(StartRequest {
        sequence: numbered(sequence),
        config: ConfigChoice::LastGood,
        ..StartRequest::default()
    })
}

fn numbered(sequence: u64) -> Option<u64> {
    (sequence > 0).then_some(sequence)
}

/// Accepted and in progress.
pub(super) fn under_way(sequence: u64) -> Result<Accepted, Code> {
    Ok(Accepted { sequence, done: false })
}

/// Accepted and done.
pub(super) fn done(sequence: u64) -> Result<Accepted, Code> {
    Ok(Accepted { sequence, done: true })
}

impl World {
    /// A first boot, up to a running engine.
    pub(super) fn running(policy: Policy) -> Self {
        let mut world = Self::starting(policy);
        world.happens(Event::Ready);
        world.forget();
        world
    }

    /// A first boot, up to a spawned engine.
    pub(super) fn starting(policy: Policy) -> Self {
        let mut world = Self::new(policy);
        world.boot();
        world.works();
        world.forget();
        assert_eq!(world.phase(), Phase::Starting);
        world
    }

    /// An engine that was stopped by request 1.
    pub(super) fn stopped(policy: Policy) -> Self {
        let mut world = Self::running(policy);
        assert_eq!(world.answer_to(stop(1)), under_way(1));
        world.obeys();
        assert_eq!(world.phase(), Phase::Stopped);
        world.forget();
        world
    }

    /// An engine that was started by request 2 and is not ready yet.
    pub(super) fn started_by_request(policy: Policy) -> Self {
        let mut world = Self::stopped(policy);
        assert_eq!(world.answer_to(start(2)), under_way(2));
        world.forget();
        world
    }

    pub(super) fn phase(&self) -> Phase {
        self.lifecycle.phase()
    }

    /// Everything that is outstanding is done, without a failure.
    pub(super) fn works(&mut self) {
        loop {
            if self.preparing.is_some() {
                self.prepared(self.verify());
            } else if !self.writing.is_empty() {
                self.write_ends(true);
            } else if self.spawning.is_some() {
                self.spawned();
            } else if self.scan {
                self.scanned();
            } else {
                break;
            }
        }
        assert_eq!(self.broken, None);
    }

    /// As [`Self::works`], but no write succeeds.
    pub(super) fn works_without_disk(&mut self) {
        while !self.writing.is_empty() || self.preparing.is_some() || self.spawning.is_some() {
            while !self.writing.is_empty() {
                self.write_ends(false);
            }
            if self.preparing.is_some() {
                self.prepared(self.verify());
            }
            if self.spawning.is_some() {
                self.spawned();
            }
        }
        assert_eq!(self.broken, None);
    }

    /// The whole engine ends on the stop signal with 143, and the supervisor reports it.
    pub(super) fn obeys(&mut self) {
        self.leader_ends(ExitStatus::Code(143), false, false, false);
        self.works();
    }

    /// The whole engine ends by itself, and the supervisor reports it.
    pub(super) fn dies(&mut self, code: i32) {
        self.leader_ends(ExitStatus::Code(code), false, false, false);
        self.works();
    }

    /// Sends a request, lets everything succeed, and returns the answer.
    pub(super) fn answer_to(&mut self, request: Request) -> Result<Accepted, Code> {
        self.answer_as("test", request)
    }

    /// As [`Self::answer_to`], as this caller.
    pub(super) fn answer_as(&mut self, caller: &str, request: Request) -> Result<Accepted, Code> {
        self.asks_as(caller, request);
        self.works();
        self.answer().map_err(|refusal| refusal.code)
    }

    /// The answer to the last request.
    pub(super) fn answer(&mut self) -> Result<Accepted, Refusal> {
        self.replies.pop().expect("no answer yet")
    }

    /// Clears the list of effects.
    pub(super) fn forget(&mut self) {
        self.effects.clear();
        self.replies.clear();
    }

    /// Whether this was done since [`Self::forget`].
    pub(super) fn did(&self, effect: &Effect) -> bool {
        self.effects.contains(effect)
    }

    /// How many engines were spawned since [`Self::forget`].
    pub(super) fn spawns(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Spawn(_))).count()
    }
}
