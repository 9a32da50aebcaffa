//! Versions of the journal that were given to the writer, and which of them are on disk. A version
//! is a number; it contains all that the earlier ones do.

use super::commit::Deciding;
use super::{Effect, Fencing, Intent, Lifecycle, Limits, Origin, Phase, Recovered, Timer};

/// Numbers of versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JournalVersions {
    /// Last version that was given to the writer.
    pub(super) given: u64,
    /// Last version that changed the intent; later ones record events.
    pub(super) intent: u64,
    /// Last version whose writing succeeded, failed or timed out.
    pub(super) answered: u64,
    /// Last version known to be on disk.
    pub(super) durable: u64,
    /// Version with the end of a run that was to be stopped, until it is on disk, or writing it
    /// failed or timed out.
    pub(super) unrecorded_end: Option<u64>,
    /// Reason why the last write failed, if it did.
    pub(super) error: Option<String>,
}

impl JournalVersions {
    /// True if every given version is on disk.
    pub(super) fn is_on_disk(&self) -> bool {
        self.durable >= self.given
    }

    /// True if the writer has nothing to do, or is not waited for any more.
    pub(super) fn is_answered(&self) -> bool {
        self.answered == self.given
    }

    /// Notes that every version up to this one is on disk.
    pub(super) fn succeeded(&mut self, version: u64) {
        self.durable = self.durable.max(version);
        self.error = None;
        self.answer(version);
    }

    /// Notes that every version up to this one is on disk, or is not waited for any more.
    pub(super) fn answer(&mut self, version: u64) {
        self.answered = self.answered.max(version);
        self.unrecorded_end = self.unrecorded_end.filter(|end| *end > version);
    }
}

impl Lifecycle {
    /// True if the current intent is on disk.
    pub fn is_durable(&self) -> bool {
        self.journal.durable >= self.journal.intent
    }

    /// True if the end of the last run is on disk, if it was to be stopped; also true when it
    /// cannot be written.
    pub fn end_is_recorded(&self) -> bool {
        self.journal.unrecorded_end.is_none()
    }

    /// Writes a version that changes the intent.
    pub(super) fn persist(&mut self) -> u64 {
        self.record();
        self.journal.intent = self.journal.given;
        self.journal.given
    }

    /// Writes a version that records an event.
    pub(super) fn record(&mut self) {
        self.journal.given += 1;
        self.out.push(Effect::Persist(self.journal.given));
    }

    /// Writes the version with the end of a run that was to be stopped.
    pub(super) fn record_end(&mut self) {
        self.record();
        self.journal.unrecorded_end = Some(self.journal.given);
    }

    /// Retries writing the journal until it is on disk: the disk may be repaired, and there may be
    /// no other event that writes it. A journal that is still awaited is not replaced by an intent
    /// that was made without it.
    pub(super) fn keep_trying_to_write(&mut self) {
        let is_known = self.late_journal.is_none();
        if is_known && !self.journal.is_on_disk() && self.journal.is_answered() {
            self.timers.entry(Timer::Rewrite).or_insert(self.now + Limits::JOURNAL_RETRY_INTERVAL);
        } else {
            self.timers.remove(&Timer::Rewrite);
        }
    }

    /// Limits the time that a request or an end waits for the journal.
    pub(super) fn limit_wait_for_journal(&mut self) {
        let commits = matches!(self.deciding, Some(Deciding::Committing { .. }));
        let ends = self.exit.is_some() && self.deciding.is_none() && !self.journal.is_answered();
        if commits || ends || self.journal.unrecorded_end.is_some() {
            self.timers.entry(Timer::Journal).or_insert(self.now + Limits::JOURNAL_WRITE_TIMEOUT);
        } else if self.exit.is_none() {
            self.timers.remove(&Timer::Journal);
        }
    }

    /// Gives up waiting for a write: the disk has not answered in time.
    pub(super) fn journal_timed_out(&mut self) {
        let limit = Limits::JOURNAL_WRITE_TIMEOUT / 1000;
        self.journal.error.get_or_insert(format!("the disk did not answer for {limit} s"));
        self.persist_failed(self.journal.given);
    }
}

// A journal whose disk did not answer in time. Until it is read, only a start without a sequence is
// decided. Once that start is made, the journal is not followed any more, only its sequences count. If it
// is refused, nothing has changed: the journal is followed as soon as it is read.

/// Progress of reading a late journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LateJournal {
    /// The journal is still being read.
    Awaited,
    /// The journal was read while a start was being decided, and is followed if that start is refused.
    Read(Box<Recovered>),
}

impl Lifecycle {
    /// True if the journal is still being read, and no start is accepted without it: either the journal is
    /// followed when it is read, or the start that is being verified goes on with its sequences.
    pub fn awaits_journal(&self) -> bool {
        let is_open = self.deciding.is_none() || self.is_preparing();
        is_open && self.late_journal == Some(LateJournal::Awaited)
    }

    /// Handles a journal that the disk has delivered late. A start that was made meanwhile holds; one
    /// that is being decided is decided first.
    pub(super) fn journal_read(&mut self, recovered: Recovered) {
        if self.late_journal.is_some() && self.deciding.is_none() {
            self.follow_late_journal(recovered);
            return;
        }
        if let Recovered::Journal { intent, .. } = &recovered {
            self.comes_after(&intent.fencing);
        }
        if self.late_journal.is_some() {
            self.late_journal = Some(LateJournal::Read(Box::new(recovered)));
        }
    }

    /// Gives decisions that were made without the journal sequences above those in it: none of the
    /// journal's requests may act again.
    fn comes_after(&mut self, read: &Fencing) {
        match &mut self.deciding {
            Some(Deciding::Verifying(pending)) => {
                pending.comes_after(read);
                if self.late_journal.is_some() {
                    // If it is refused, the journal is followed, and must still be there.
                    return;
                }
            }
            Some(Deciding::Committing { proposed, pending, .. }) => {
                pending.comes_after(read);
                proposed.fencing.comes_after(read);
            }
            Some(Deciding::Spawning { origin, pending, .. }) => {
                if let Some(pending) = pending {
                    pending.comes_after(read);
                }
                if let Origin::Resume(before) = origin {
                    before.fencing.comes_after(read);
                }
            }
            Some(Deciding::Preparing(_) | Deciding::Resuming { .. } | Deciding::Upgrading(_))
            | None => {}
        }
        self.intent.fencing.comes_after(read);
        self.persist();
    }

    /// Returns to the late journal, because the start that was being decided is not made.
    pub(super) fn return_to_late_journal(&mut self, late: LateJournal) {
        match late {
            LateJournal::Awaited => self.late_journal = Some(late),
            LateJournal::Read(recovered) => self.follow_late_journal(*recovered),
        }
    }

    /// True if a start that was accepted, and not made, may be on the disk in place of the journal
    /// that was read.
    pub(super) fn journal_may_be_replaced(&self) -> bool {
        self.journal.given > 0
    }

    /// Does what the start of the manager would have done. After TERM that is left to the next
    /// container, which must find the journal.
    fn follow_late_journal(&mut self, recovered: Recovered) {
        self.late_journal = None;
        if self.terminating && !self.journal_may_be_replaced() {
            return;
        }
        self.phase = Phase::Stopped;
        self.intent = Intent::default();
        self.boot(recovered);
    }
}
