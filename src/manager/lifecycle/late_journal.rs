//! A journal whose disk did not answer in time. Until it is read, only a start without a sequence is
//! decided. Once that start is made, the journal is not followed any more, only its sequences count. If it
//! is refused, nothing has changed: the journal is followed as soon as it is read.

use super::commit::Deciding;
use super::{Effect, Fencing, Intent, Lifecycle, Millis, Origin, Phase, Recovered};

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
    pub(super) fn journal_read(
        &mut self,
        now: Millis,
        recovered: Recovered,
        out: &mut Vec<Effect>,
    ) {
        if self.late_journal.is_some() && self.deciding.is_none() {
            self.follow_late_journal(now, recovered, out);
            return;
        }
        if let Recovered::Journal { intent, .. } = &recovered {
            self.comes_after(&intent.fencing, out);
        }
        if self.late_journal.is_some() {
            self.late_journal = Some(LateJournal::Read(Box::new(recovered)));
        }
    }

    /// Gives decisions that were made without the journal sequences above those in it: none of the
    /// journal's requests may act again.
    fn comes_after(&mut self, read: &Fencing, out: &mut Vec<Effect>) {
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
        self.persist(out);
    }

    /// Returns to the late journal, because the start that was being decided is not made.
    pub(super) fn return_to_late_journal(
        &mut self,
        now: Millis,
        late: LateJournal,
        out: &mut Vec<Effect>,
    ) {
        match late {
            LateJournal::Awaited => self.late_journal = Some(late),
            LateJournal::Read(recovered) => self.follow_late_journal(now, *recovered, out),
        }
    }

    /// True if a start that was accepted, and not made, may be on the disk in place of the journal
    /// that was read.
    pub(super) fn journal_may_be_replaced(&self) -> bool {
        self.journal.given > 0
    }

    /// Does what the start of the manager would have done. After TERM that is left to the next
    /// container, which must find the journal.
    fn follow_late_journal(&mut self, now: Millis, recovered: Recovered, out: &mut Vec<Effect>) {
        self.late_journal = None;
        if self.terminating && !self.journal_may_be_replaced() {
            return;
        }
        self.phase = Phase::Stopped;
        self.intent = Intent::default();
        self.boot(now, recovered, out);
    }
}
