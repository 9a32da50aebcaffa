//! Turns signals, results and requests into events of the lifecycle.

use std::collections::VecDeque;
use std::mem;

use super::actor::Supervisor;
use super::handle::{Call, Control};
use super::upgrade::Serving;
use super::waiting::WaitingRequest;
use crate::config_watch::Observed;
use crate::lifecycle::Event;
use crate::process::{self, Launched, Tree};
use stayput_api as api;

impl Supervisor {
    pub(super) fn called(&mut self, call: Call) {
        match call {
            Call::Ping { reply } => drop(reply.send(())),
            Call::Probe { reply } => {
                let running = self.lifecycle.state() == api::State::Running;
                self.readiness.ask(running, reply);
            }
            Call::ServerClosed => self.feed(Event::ServerClosed),
            Call::Control { request, by, reply } => {
                let waiting = WaitingRequest { request, by, reply };
                let serving = *self.parts.serving.borrow();
                match (self.lifecycle.is_deciding(), serving) {
                    (false, _) => self.decide(waiting),
                    (true, Serving::Closed) => waiting.refuse_while_another_takes_over(),
                    (true, Serving::Open | Serving::Ended) => self.waiting.push(waiting),
                }
            }
        }
    }

    /// Begins to decide about a request.
    pub(super) fn decide(&mut self, WaitingRequest { request, by, reply }: WaitingRequest) {
        self.reply = Some(reply);
        self.feed(match request {
            Control::Stop(request) => Event::Stop { request, by },
            Control::Start(request) => Event::Start { request, by },
            Control::Drain(request) => Event::Drain(request),
            Control::Upgrade => Event::Upgrade,
        });
    }

    pub(super) fn signalled(&mut self, signals: &[i32]) {
        for &signal in signals {
            match signal {
                libc::SIGCHLD => self.reap(),
                libc::SIGTERM => {
                    tracing::info!("TERM received: stopping the engine, then the manager");
                    self.feed(Event::Terminate);
                }
                other => self.feed(Event::Forward(other)),
            }
        }
    }

    pub(super) fn reap(&mut self) {
        let leader = self.tree.as_ref().and_then(Tree::unreaped_leader);
        let asked = self.asked_pid();
        let (mut exited, mut checked) = (None, None);
        for reaped in self.reaper.reap() {
            if Some(reaped.pid) == leader {
                exited = Some(reaped.status);
            } else if Some(reaped.pid) == asked {
                checked = Some(reaped.status);
            }
        }
        if let Some(status) = checked {
            self.check_ended(status);
        }
        if let Some(status) = exited {
            if let Some(tree) = &mut self.tree {
                tree.leader_reaped();
            }
            if let Some(error) = self.late.take().and_then(Launched::failure) {
                tracing::error!(%error, "the engine's program was not executed");
            }
            let oom = self.was_out_of_memory(status);
            tracing::info!(%status, oom, "the engine's leader ended");
            self.feed(Event::EngineExited { status, oom });
        } else if self.lifecycle.is_ending()
            && !self.lifecycle.leader_is_alive()
            && let Some(event) = self.scan()
        {
            self.feed(event);
        }
    }

    pub(super) fn config_observed(&mut self, observed: &Observed) {
        let swapped = self
            .prepared
            .as_ref()
            .is_some_and(|prepared| observed.change_count > prepared.change_count);
        if swapped || self.lifecycle.awaits_config() {
            self.feed(Event::ConfigChanged);
        }
        self.publisher.touch();
    }

    /// Passes an event to the lifecycle and carries out the effects.
    pub(super) fn feed(&mut self, event: Event) {
        let before = self.lifecycle.state();
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            tracing::debug!(?event, "event");
            for effect in self.lifecycle.step(self.clock.now(), event) {
                tracing::debug!(?effect, "effect");
                events.extend(self.perform(effect));
            }
        }
        let after = self.lifecycle.state();
        // Also of an engine that was taken over.
        if before != api::State::Running && after == api::State::Running {
            self.check_archive();
        }
        match after {
            api::State::Running if mem::take(&mut self.startup_code_loaded) => {
                process::unmap_code()
            }
            api::State::Starting | api::State::Running => {}
            api::State::Stopped
            | api::State::Stopping
            | api::State::Killing
            | api::State::Backoff
            | api::State::Failed
            | api::State::Stuck => self.readiness.run_ended(),
        }
        self.publisher.touch();
    }
}
