//! Writes an intent to the journal before acting on it.

use super::upgrade::Upgrading;
use super::{
    Asked, Effect, Fencing, Intent, Judged, Lifecycle, Limits, Millis, Origin, Phase, Prepared,
    Request, Resume, Timer,
};
use stayput_api::{Code, Desired, Refusal, Span};

/// The step of a decision whose result is awaited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Deciding {
    /// A start without a request: its config is being prepared.
    Preparing(Origin),
    /// A start that is due by [`Intent::resume`]: its config is being prepared.
    Resuming {
        /// Why the mounted config cannot be used, once the last good one is tried.
        mounted: Option<String>,
    },
    /// A requested start: its config is being prepared.
    Verifying(Pending),
    /// An intent is being written to the journal; the act follows.
    Committing { proposed: Box<Intent>, pending: Pending, version: u64, act: Act },
    /// Another program is about to take over.
    Upgrading(Upgrading),
    /// The leader is being spawned.
    Spawning {
        origin: Origin,
        pending: Option<Pending>,
        prepared: Prepared,
        /// True if the mounted config changed in the meantime.
        config_changed: bool,
    },
}

/// Action that follows when the intent is on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Stop the engine, with the request's own times.
    Stop {
        /// Time from the stop signal to KILL.
        grace: Option<Span>,
        /// Time that the engine is unready before the stop signal.
        drain: Option<Span>,
        /// True if the manager ends afterwards.
        exit: bool,
    },
    /// Spawn the engine with this config.
    Spawn(Prepared),
    /// Nothing: the engine runs as requested.
    Acknowledge,
    /// Nothing: the request is refused.
    Refuse(Refusal),
}

/// A request that passed the sequence check and is not yet decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pending {
    pub(super) sequence: u64,
    pub(super) request: Request,
    pub(super) by: String,
    pub(super) at: Millis,
    /// The intent before this request.
    pub(super) before: Intent,
}

impl Pending {
    pub(super) fn fencing(&self, accepted: bool) -> Fencing {
        let judged =
            Judged { request: self.request.clone(), accepted, by: self.by.clone(), at: self.at };
        Fencing { sequence: self.sequence, last: Some(judged), unknown: false }
    }

    /// The intent if the request is accepted. It ends a hold, and a start without a request is made
    /// only if this request asks for it.
    pub(super) fn accepted(self, desired: Desired) -> (Self, Intent) {
        let resume = self.resume().filter(|_| !self.before.is_kept_stopped_by_another(&self.by));
        let mut intent = Intent {
            desired,
            held: None,
            unseen_ends: 0,
            resume,
            fencing: self.fencing(true),
            ..self.before.clone()
        };
        let stays_stopped = self.before.resume.is_some() && intent.resume.is_none();
        if desired != self.before.desired || stays_stopped {
            intent.asked = Some(Asked { by: self.by.clone(), at: self.at });
        }
        if desired == Desired::Stopped {
            intent.unproven = false;
        }
        (self, intent)
    }

    /// Gives the request the next sequence, unless its own is above all used ones.
    pub(super) fn comes_after(&mut self, used: &Fencing) {
        if self.sequence <= used.sequence {
            self.sequence = used.next();
            self.request = self.request.clone().with_sequence(self.sequence);
        }
    }

    fn resume(&self) -> Option<Resume> {
        let Request::Stop(stop) = &self.request else { return None };
        let after = stop.resume_after?.0;
        let checksum = stop.resume_checksum.clone();
        Some(Resume { at: self.at.saturating_add(after), after, checksum })
    }

    /// The intent if the request is refused: only the sequence is recorded.
    pub(super) fn refused(self) -> (Self, Intent) {
        let intent = Intent { fencing: self.fencing(false), ..self.before.clone() };
        (self, intent)
    }
}

impl Lifecycle {
    /// True if no request may be passed in: one is accepted but not answered yet, the engine is
    /// being started, or the manager is about to end.
    pub fn is_deciding(&self) -> bool {
        self.deciding.is_some() || self.exit.is_some()
    }

    /// True while a config is being verified and staged.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(
            self.deciding,
            Some(Deciding::Preparing(_) | Deciding::Resuming { .. } | Deciding::Verifying(_))
        )
    }

    /// The intent that the journal must contain: the one that is being written, otherwise the current one.
    pub fn journaled_intent(&self) -> &Intent {
        if let Some(Deciding::Committing { proposed, .. }) = &self.deciding {
            proposed
        } else {
            &self.intent
        }
    }

    /// Writes the proposed intent; `act` follows.
    pub(super) fn commit(&mut self, (pending, proposed): (Pending, Intent), act: Act) {
        self.timers.insert(Timer::Journal, self.now + Limits::JOURNAL_WRITE_TIMEOUT);
        let version = self.persist();
        let proposed = Box::new(proposed);
        self.deciding = Some(Deciding::Committing { proposed, pending, version, act });
    }

    /// Refuses a request: only its sequence is written. While the journal is late, the request has
    /// no sequence and nothing is written: that would replace a journal that is not read yet.
    pub(super) fn refuse(&mut self, pending: Pending, refusal: Refusal) {
        let Some(late) = self.late_journal.take() else {
            self.commit(pending.refused(), Act::Refuse(refusal));
            return;
        };
        self.intent = pending.before;
        self.out.push(Effect::Reply(Err(refusal)));
        self.return_to_late_journal(late);
    }

    pub(super) fn persisted(&mut self, version: u64) {
        self.journal.succeeded(version);
        match self.deciding.take() {
            Some(Deciding::Committing { proposed, pending, version: awaited, act })
                if awaited <= version =>
            {
                self.intent = *proposed;
                self.act(pending, act);
            }
            other => self.deciding = other,
        }
    }

    /// Changes the current intent because of something that happened to the engine, and also the
    /// intent that is being written. Only a stop that is being written is not changed.
    pub(super) fn amend(&mut self, change: impl Fn(&mut Intent)) {
        change(&mut self.intent);
        if let Some(Deciding::Committing { proposed, act, .. }) = &mut self.deciding {
            if let Act::Stop { .. } = act {
                self.record();
                return;
            }
            change(proposed);
        }
        self.persist();
    }

    /// Notes that the journal cannot be written, or not in time. A stop that the next container
    /// would not know is refused; a start is carried out anyway.
    pub(super) fn persist_failed(&mut self, version: u64) {
        self.journal.answer(version);
        match self.deciding.take() {
            Some(Deciding::Committing { proposed, pending, version: awaited, act })
                if awaited <= version =>
            {
                match act {
                    Act::Stop { .. } => self.refuse_stop(&pending),
                    Act::Spawn(_) | Act::Acknowledge | Act::Refuse(_) => {
                        self.intent = *proposed;
                        self.act(pending, act);
                    }
                }
            }
            other => self.deciding = other,
        }
    }

    fn refuse_stop(&mut self, pending: &Pending) {
        let error = self.journal.error.as_deref().unwrap_or("no answer");
        self.out.push(Effect::Reply(Err(Refusal::new(
            Code::JournalUnavailable,
            format!(
                "the stop could not be written down ({error}), so the next container would not \
                 know of it; nothing was stopped. Free or repair the volume behind --state-dir"
            ),
        ))));
        // The write that hangs may still reach the disk, so the intent that is in force is written
        // after it.
        self.intent.fencing = pending.fencing(false);
        self.persist();
    }

    fn act(&mut self, pending: Pending, act: Act) {
        match act {
            Act::Stop { grace, drain, exit } => {
                if !self.terminating {
                    // The engine ended by itself in the meantime. It is to be stopped now, so it is
                    // not restarted.
                    self.exit = None;
                }
                self.exit_after_stop = exit;
                self.resume_refused = None;
                self.stop_engine(grace, drain);
                if self.phase == Phase::Stopped && !self.journal.is_answered() {
                    // The engine ended while the stop was written; its end is written after that.
                    self.journal.unrecorded_end = Some(self.journal.given);
                }
                self.out.push(Effect::Reply(self.outcome(&pending)));
            }
            Act::Spawn(prepared) => {
                self.exit_after_stop = false;
                self.spawn(Origin::Request, Some(pending), prepared);
            }
            Act::Acknowledge => {
                self.end_drain_ahead();
                self.out.push(Effect::Reply(self.outcome(&pending)));
            }
            Act::Refuse(refusal) => self.out.push(Effect::Reply(Err(refusal))),
        }
    }
}
