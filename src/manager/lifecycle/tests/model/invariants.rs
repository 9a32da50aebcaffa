//! What must hold after every step. The simulated environment reports forbidden effects; the checks
//! here need a memory, or private fields.

use std::collections::BTreeSet;

use super::super::world::{Saved, World};
use super::moves::Move;
use crate::lifecycle::commit::{Act, Deciding};
use crate::lifecycle::{Effect, HeldCode, Intent, OnExit, Origin, Phase, Request, Timer};
use stayput_api::{Accepted, Code, Desired};

/// What the checker remembers, across crashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// Highest sequence that got an answer in this boot, and that must outlive it.
    highest: u64,
    highest_durable: u64,
    /// Sequences of starts that were durable and spawned an engine.
    acted: BTreeSet<u64>,
    /// Sequences of stops whose start after `resumeAfter` was durable and spawned an engine.
    resumed: BTreeSet<u64>,
    /// The last accepted request is a stop.
    stopped: bool,
    /// The hold that is on the disk.
    held: Option<Intent>,
}

impl Memory {
    /// What is on the disk is what this request has left.
    pub(super) fn of(last: &Request) -> Self {
        Self { stopped: matches!(last, Request::Stop(_)), ..Self::default() }
    }

    /// Checks one step.
    pub(super) fn check(
        &mut self,
        before: &World,
        step: &Move,
        after: &World,
    ) -> Result<(), &'static str> {
        if let Some(complaint) = after.broken {
            return Err(complaint);
        }
        structure(after)?;
        durability(after)?;
        if *step == Move::Crash {
            self.highest = self.highest_durable;
            if let Some(held) = self.held.take() {
                let still = after.phase() == Phase::Failed
                    && after.lifecycle.intent().held == held.held
                    && after.preparing.is_none();
                require(still, "a hold did not outlive a crash")?;
            }
        }
        if let (Move::JournalRead, Some(saved)) = (step, &before.disk) {
            self.highest = self.highest.max(saved.intent.fencing.sequence);
            require(sequence(after) >= self.highest, "a sequence of the journal is forgotten")?;
        }
        let resumes = |world: &World| match &world.lifecycle.deciding {
            Some(Deciding::Resuming { .. }) => true,
            Some(Deciding::Spawning { origin, .. }) => matches!(origin, Origin::Resume(_)),
            _ => false,
        };
        let due = *step == Move::Fires(Timer::Resume);
        require(!resumes(after) || resumes(before) || due, "resumed before its time")?;
        let asked = match step {
            Move::Asks(request) => Some(request),
            _ => before.open.as_ref(),
        };
        for effect in &after.effects {
            match effect {
                Effect::Reply(_) if before.upgrade_is_open || *step == Move::Upgrade => {}
                Effect::Reply(Ok(accepted)) => self.accepted(asked, *accepted, after)?,
                Effect::Reply(Err(refusal)) => match refusal.code {
                    Code::StaleSequence | Code::SequenceReused | Code::SequenceJump => {}
                    _ => self.answered(after),
                },
                Effect::Spawn(_) if resumes(before) => self.stopped = false,
                Effect::Spawn(_) if before.open.is_none() => {
                    require(!self.stopped, "an engine was started after an accepted stop")?;
                }
                Effect::Exit(_) => {
                    let policy = after.lifecycle.policy().on_exit == OnExit::Exit;
                    require(
                        after.lifecycle.is_terminating()
                            || after.lifecycle.exit_after_stop
                            || policy,
                        "an end without a request",
                    )?;
                }
                _ => {}
            }
        }
        if *step == Move::Spawned && matches!(before.open, Some(Request::Start(_))) {
            self.stopped = false;
            if before.lifecycle.is_durable() {
                let first = self.acted.insert(after.lifecycle.intent().fencing.sequence);
                require(first, "a sequence took effect twice")?;
            }
        }
        if *step == Move::Spawned && resumes(before) {
            let sequence = after.lifecycle.intent().fencing.sequence;
            require(!self.resumed.contains(&sequence), "resumed twice")?;
            if before.lifecycle.is_durable() {
                self.resumed.insert(sequence);
            }
        }
        if let Some(Saved { intent, .. }) = &after.disk {
            let start = intent.fencing.last.as_ref().filter(|last| last.accepted);
            if start.is_some_and(|last| matches!(last.request, Request::Start(_))) {
                self.stopped = false;
            }
        }
        let intent = after.lifecycle.intent();
        let settled = after.lifecycle.is_durable() && after.lifecycle.deciding.is_none();
        let is_written = intent.held.is_some() && !is_held_without_journal(intent);
        self.held = (settled && is_written).then(|| intent.clone());
        Ok(())
    }

    fn accepted(
        &mut self,
        asked: Option<&Request>,
        accepted: Accepted,
        world: &World,
    ) -> Result<(), &'static str> {
        require(accepted.sequence >= self.highest, "a lower sequence was accepted")?;
        let mut resume = false;
        if let Some(Request::Stop(stop)) = asked {
            self.stopped = true;
            resume = stop.resume_after.is_some();
        }
        let pending = world.lifecycle.intent().resume.is_some();
        require(pending == resume, "an accepted request did not replace the resume")?;
        self.answered(world);
        Ok(())
    }

    fn answered(&mut self, world: &World) {
        self.highest = world.lifecycle.intent().fencing.sequence;
        if world.lifecycle.is_durable() {
            self.highest_durable = self.highest;
        }
    }
}

fn require(holds: bool, name: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(name) }
}

/// The sequence of the request that is being decided, otherwise of the last one.
fn sequence(world: &World) -> u64 {
    match &world.lifecycle.deciding {
        Some(Deciding::Verifying(pending) | Deciding::Committing { pending, .. }) => {
            pending.sequence
        }
        _ => world.lifecycle.intent().fencing.sequence,
    }
}

/// Every journal in the model can be read, so this hold is not to be written.
fn is_held_without_journal(intent: &Intent) -> bool {
    intent.held.as_ref().is_some_and(|held| held.code == HeldCode::JournalUnreadable)
}

/// Durable means: on the disk. (The checksum is that of the last start, and not requested, so it is
/// left out.)
fn durability(world: &World) -> Result<(), &'static str> {
    let lifecycle = &world.lifecycle;
    let replaced = world.disk.as_ref().is_some_and(|saved| is_held_without_journal(&saved.intent));
    require(!replaced, "a journal that can be read was replaced by a hold")?;
    if is_held_without_journal(&lifecycle.intent) {
        return Ok(());
    }
    if !lifecycle.is_durable() || matches!(lifecycle.deciding, Some(Deciding::Committing { .. })) {
        return Ok(());
    }
    let mut known = world.disk.as_ref().map(|saved| saved.intent.clone()).unwrap_or_default();
    known.checksum.clone_from(&lifecycle.intent.checksum);
    require(known == lifecycle.intent, "reported durable, and not on the disk")
}

/// Phase, run, timers and decision fit together.
fn structure(world: &World) -> Result<(), &'static str> {
    let lifecycle = &world.lifecycle;
    let phase = lifecycle.phase;
    let has = |timer| lifecycle.timers.contains_key(&timer);
    let none = matches!(phase, Phase::Stopped | Phase::Failed | Phase::Backoff);
    let alive = matches!(phase, Phase::Starting | Phase::Running);
    require(lifecycle.run.is_none() == none, "a run in a wrong phase")?;
    require(lifecycle.ending.is_some() != (none || alive), "an ending in a wrong phase")?;
    require(lifecycle.intent.held.is_none() || phase == Phase::Failed, "held, and not failed")?;
    let wanted = lifecycle.intent.desired == Desired::Running;
    let resume = lifecycle.intent.resume.as_ref();
    require(resume.is_none() || !wanted, "to be resumed, and not stopped")?;
    if let Some(due) = lifecycle.timers.get(&Timer::Resume) {
        let at = resume.map(|resume| resume.at);
        require(Some(*due) >= at || lifecycle.awaits_config(), "resumes too early")?;
        require(phase == Phase::Stopped, "resumes beside an engine")?;
    } else if resume.is_some() && phase == Phase::Stopped {
        let later = lifecycle.is_deciding() || lifecycle.terminating || lifecycle.exit_after_stop;
        require(later, "nothing will resume it")?;
    }
    require(!alive || wanted, "an engine that is to be stopped still runs")?;
    require(!lifecycle.terminating || !alive, "an engine still runs after TERM")?;
    let committing = match &lifecycle.deciding {
        Some(Deciding::Committing { act, .. }) => {
            require(
                !matches!(act, Act::Spawn(_)) || none,
                "a start is decided while an engine runs",
            )?;
            true
        }
        Some(
            Deciding::Verifying(_)
            | Deciding::Spawning { .. }
            | Deciding::Preparing(_)
            | Deciding::Resuming { .. },
        ) => {
            require(none, "a start is decided while an engine runs")?;
            false
        }
        Some(Deciding::Upgrading(_)) | None => false,
    };
    let upgrading = matches!(lifecycle.deciding, Some(Deciding::Upgrading(_)));
    require(upgrading == has(Timer::Upgrade), "an upgrade without its deadline")?;
    require(!committing || has(Timer::Journal), "the journal is awaited without end")?;
    let request = world.open.is_some();
    require(!request || lifecycle.deciding.is_some(), "a request waits for nothing")?;
    let due = match phase {
        Phase::Backoff => has(Timer::Backoff) || lifecycle.is_deciding(),
        Phase::Draining => has(Timer::Drain),
        Phase::Straggling => has(Timer::TreeGrace),
        Phase::Dumping => has(Timer::Dump),
        Phase::Killing => has(Timer::Kill),
        Phase::Signalled => has(Timer::Grace) || lifecycle.terminating,
        Phase::Starting => has(Timer::Settle) || lifecycle.policy.probe,
        Phase::Stopped | Phase::Failed | Phase::Running | Phase::Lingering | Phase::Stuck => true,
    };
    require(due, "a phase without its deadline")?;
    require(
        !has(Timer::Prove) || phase == Phase::Running,
        "an engine that is not up proves its config",
    )?;
    require(
        !has(Timer::Drain) || matches!(phase, Phase::Draining | Phase::Running),
        "an engine that is not up drains",
    )?;
    let rest = matches!(phase, Phase::Stopped | Phase::Failed | Phase::Running | Phase::Stuck);
    let rewrites = !lifecycle.journal.is_on_disk();
    let only = |timer: &Timer| match timer {
        Timer::Rewrite => rewrites,
        Timer::Journal => !lifecycle.end_is_recorded(),
        Timer::Resume => phase == Phase::Stopped,
        Timer::Prove | Timer::Drain => phase == Phase::Running,
        // The disk may be slow, and the engine may have ended meanwhile.
        Timer::Keep => true,
        _ => false,
    };
    let awake = lifecycle.is_deciding() || lifecycle.timers.keys().all(only);
    require(!rest || awake, "a timer at rest")
}
