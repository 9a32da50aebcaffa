//! The loop: waits for signals, results and requests, and makes events of the lifecycle from them.

use std::collections::VecDeque;
use std::future::pending;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};

use super::handle::{Call, Control, WaitingRequest};
use super::journal::{JournalWriter, Written};
use super::perform::Ready;
use super::status::StartedOn;
use super::upgrade::Serving;
use super::{Clock, Supervisor};
use crate::config_watch::Observed;
use crate::lifecycle::{Event, Millis, Recovered};
use crate::process::{self, LaunchError, Launched, Tree};
use stayput_api as api;

/// The journal that is being read.
pub(super) type Reading = Pin<Box<dyn Future<Output = Recovered> + Send>>;

/// How long the start of the manager waits for the journal.
const JOURNAL_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last version of the journal may take when the manager ends.
const JOURNAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Reads the journal, follows it, and supervises until the manager is to end. After that it
    /// continues to answer requests until it is dropped.
    pub async fn run(mut self) {
        let recovered = self.recover().await;
        if let Recovered::TakenOver(_) = recovered {
            // The engine is known before it may be found to have ended.
            self.feed(Event::Boot(recovered));
            self.reap();
        } else {
            self.begin(recovered);
        }
        loop {
            self.publish();
            self.announce_end().await;
            self.turn().await;
        }
    }

    fn begin(&mut self, recovered: Recovered) {
        // Children that ended before the first SIGCHLD was received, such as init steps of the
        // image.
        self.reap();
        self.feed(Event::Boot(recovered));
    }

    async fn recover(&mut self) -> Recovered {
        if let Some(taken) = self.parts.hand_over.take() {
            if let Some((journal, worker)) = self.parts.journal.clone() {
                self.journal = Some(JournalWriter::new(journal, worker, false));
            }
            let lifecycle = Box::new(taken.lifecycle.clone());
            self.take_over(taken);
            return Recovered::TakenOver(lifecycle);
        }
        let Some((journal, worker)) = self.parts.journal.clone() else { return Recovered::Fresh };
        let (reader, pod) = (journal.clone(), self.parts.pod.uid.clone());
        let read = worker.run(move || reader.recover(pod.as_deref()));
        let mut reading: Reading = Box::pin(async {
            read.await.unwrap_or_else(|error| {
                Recovered::Unreadable(format!("cannot read the journal: {error}"))
            })
        });
        let recovered = match timeout(JOURNAL_READ_TIMEOUT, &mut reading).await {
            Ok(recovered) => recovered,
            Err(_) => {
                self.reading = Some(reading);
                let message = format!(
                    "the state directory did not answer within {JOURNAL_READ_TIMEOUT:?}: the manager \
                     follows the journal as soon as it does; repair the volume behind --state-dir"
                );
                tracing::error!("{message}");
                Recovered::NotYet(message)
            }
        };
        let is_unreadable = matches!(recovered, Recovered::Unreadable(_) | Recovered::NotYet(_));
        self.journal = Some(JournalWriter::new(journal, worker, is_unreadable));
        recovered
    }

    /// Passes on the journal, which was read after all.
    fn journal_read(&mut self, recovered: Recovered) {
        tracing::info!("the state directory answers again, and the journal was read");
        // If a start was accepted meanwhile, the file is kept beside the new one.
        if self.lifecycle.awaits_journal()
            && !matches!(recovered, Recovered::Unreadable(_))
            && let Some(journal) = &mut self.journal
        {
            journal.is_readable();
        }
        self.feed(Event::JournalRead(recovered));
    }

    /// Waits for one thing to happen and deals with it.
    async fn turn(&mut self) {
        let due = self.lifecycle.timers().min_by_key(|(_, due)| *due);
        tokio::select! {
            // Deaths and TERM come first, requests last.
            biased;
            signals = self.signals.recv() => self.signalled(&signals),
            // Before the results of writes: these are done after this read, and may have to be written over.
            recovered = next(&mut self.reading) => {
                self.reading = None;
                self.journal_read(recovered);
            }
            written = next_written(&mut self.journal) => match written.result {
                Ok(()) => self.feed(Event::Persisted(written.version)),
                Err(error) => {
                    tracing::error!(
                        %error,
                        "the journal is not written: a stop would be forgotten by the next \
                         container, so stops are refused; free or repair the volume behind \
                         --state-dir"
                    );
                    self.feed(Event::PersistFailed { version: written.version, error });
                }
            },
            result = next(&mut self.preparing) => {
                self.preparing = None;
                if let Err(refusal) = &result {
                    tracing::error!(code = refusal.code.as_str(), "{}", refusal.message);
                }
                let event = result.map(|Ready { known, config, variables }| {
                    self.variables = variables;
                    self.started_on = config.as_ref().map(StartedOn::from);
                    self.prepared = config;
                    known
                });
                self.feed(Event::Prepared(event));
            }
            // A panic is reported, and keeps nothing.
            _ = next(&mut self.keeping) => {
                self.keeping = None;
                self.feed(Event::Kept);
            }
            opened = next(&mut self.opening) => {
                self.opening = None;
                self.program_opened(opened);
            }
            () = next_timer(self.clock, due.map(|(_, due)| due)) => {
                if let Some((timer, _)) = due {
                    self.feed(Event::Timer(timer));
                }
            }
            answer = self.readiness.answered() => {
                if self.readiness.take(&answer) {
                    self.feed(Event::Ready);
                }
                self.publisher.touch();
            }
            () = next_timer(self.clock, self.read_again) => self.check_archive(),
            observed = next_observed(&mut self.config) => self.config_observed(&observed),
            Ok(()) = self.environment.changed() => self.publisher.touch(),
            // The sender is one of our own fields.
            Ok(()) = self.errors.changed() => self.publisher.touch(),
            // Without an API there is no sender.
            Ok(()) = self.parts.lines_lost.changed() => self.publisher.touch(),
            Some(call) = self.calls.recv() => self.called(call),
        }
        while !self.lifecycle.is_deciding() {
            let Some(request) = self.waiting.pop() else { break };
            self.decide(request);
        }
    }

    /// Reports to the rest of the manager that it is to end, when the journal is written or its
    /// time is over.
    async fn announce_end(&mut self) {
        let Some(ended) = self.ended.take() else { return };
        let Some(end) = self.end.take() else { return };
        if let Some(journal) = &mut self.journal {
            let flushed = timeout(JOURNAL_FLUSH_TIMEOUT, async {
                while journal.is_busy() {
                    journal.written().await;
                }
            });
            if flushed.await.is_err() {
                tracing::error!("the last journal entry did not reach the disk");
            }
        }
        // The receiver is gone if the manager is already shutting down.
        let _ = end.send(ended);
    }
}

async fn next_written(journal: &mut Option<JournalWriter>) -> Written {
    match journal {
        Some(journal) => journal.written().await,
        None => pending().await,
    }
}

/// The result of a task, once there is a task.
async fn next<F: Future + Unpin>(task: &mut Option<F>) -> F::Output {
    match task {
        Some(task) => task.await,
        None => pending().await,
    }
}

async fn next_timer(clock: Clock, due: Option<Millis>) {
    match due {
        Some(due) => sleep_until(clock.instant(due)).await,
        None => pending().await,
    }
}

async fn next_observed(config: &mut Option<watch::Receiver<Arc<Observed>>>) -> Arc<Observed> {
    if let Some(receiver) = config {
        if receiver.changed().await.is_ok() {
            return receiver.borrow_and_update().clone();
        }
        // The watcher ended; its last reading stays.
        *config = None;
    }
    pending().await
}

// Turns signals, results and requests into events of the lifecycle.

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
        let [exited, checked] =
            process::statuses_of([leader, self.asked_pid()], self.reaper.reap());
        if let Some(status) = checked {
            self.check_ended(status);
        }
        if let Some(status) = exited {
            if let Some(tree) = &mut self.tree {
                tree.leader_reaped();
            }
            if let Some(source) = self.late.take().and_then(Launched::failure) {
                let program = self.parts.command.first().cloned().unwrap_or_default();
                let error = LaunchError { program, source };
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
