//! The loop: waits for the next event.

use std::future::pending;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

use super::actor::Supervisor;
use super::clock::Clock;
use super::journal_writer::{JournalWriter, Written};
use super::prepare::{Preparing, Ready};
use super::status::StartedOn;
use super::upgrade::Opening;
use crate::config_watch::Observed;
use crate::lifecycle::{Event, Millis, Recovered};
use stayput_api::Refusal;

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
            recovered = next_read(&mut self.reading) => {
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
                    let error = error.to_string();
                    self.feed(Event::PersistFailed { version: written.version, error });
                }
            },
            result = next_prepared(&mut self.preparing) => {
                self.preparing = None;
                if let Err(refusal) = &result {
                    tracing::error!(code = refusal.code.as_str(), "{}", refusal.message);
                }
                let event = result.map(|Ready { known, config }| {
                    self.started_on = config.as_ref().map(StartedOn::from);
                    self.prepared = config;
                    known
                });
                self.feed(Event::Prepared(event));
            }
            () = kept(&mut self.keeping) => {
                self.keeping = None;
                self.feed(Event::Kept);
            }
            opened = next_opened(&mut self.opening) => {
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
            observed = next_observed(&mut self.config) => self.config_observed(&observed),
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

async fn next_read(reading: &mut Option<Reading>) -> Recovered {
    match reading {
        Some(reading) => reading.await,
        None => pending().await,
    }
}

async fn next_prepared(preparing: &mut Option<Preparing>) -> Result<Ready, Refusal> {
    match preparing {
        Some(preparing) => preparing.await,
        None => pending().await,
    }
}

async fn kept(keeping: &mut Option<JoinHandle<()>>) {
    match keeping {
        Some(keeping) => {
            // A panic is reported, and keeps nothing.
            let _ = keeping.await;
        }
        None => pending().await,
    }
}

async fn next_opened(opening: &mut Option<Opening>) -> Result<Option<OwnedFd>, String> {
    match opening {
        Some(opening) => opening.await,
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
