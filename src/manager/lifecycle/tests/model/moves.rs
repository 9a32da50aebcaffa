//! What can happen next: everything, at any time.

use super::super::scenario::{
    start, start_last_good, start_with, stop, stop_and_exit, stop_resuming, stop_within,
};
use super::super::world::{Life, OTHER, World};
use crate::lifecycle::{Checked, Event, ExitStatus, Phase, Request, Timer};
use stayput_api::{Code, Refusal};

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    Asks(Request),
    /// A drain is asked for, ahead of the stop with this sequence.
    DrainsAhead(u64),
    Prepared,
    PrepareFails,
    Written,
    WriteFails,
    Spawned,
    SpawnFails,
    SpawnLacks,
    ConfigOutdated,
    Ready,
    LeaderEnds {
        status: ExitStatus,
        server: bool,
        straggler: bool,
    },
    ServerEnds,
    StragglerEnds,
    Scanned,
    JournalRead,
    Upgrade,
    ProgramChecked(bool),
    ServerClosed,
    NotExecuted,
    TakesOver,
    Fires(Timer),
    Term,
    Interrupt,
    /// The container is killed and comes back.
    Crash,
}

impl Move {
    pub(super) fn happens_in(&self, world: &mut World) {
        match self {
            Self::Asks(request) => world.asks(request.clone()),
            Self::DrainsAhead(sequence) => drop(world.drains_ahead(*sequence)),
            Self::Prepared => world.prepared(world.verify()),
            Self::PrepareFails => {
                world.prepared(Err(Refusal::new(Code::StageFailed, "")));
            }
            Self::Written => world.write_ends(true),
            Self::WriteFails => world.write_ends(false),
            Self::Spawned => world.spawned(),
            Self::SpawnFails => world.spawn_fails(),
            Self::SpawnLacks => world.spawn_lacks(),
            Self::ConfigOutdated => world.config_outdated(),
            Self::Ready => world.happens(Event::Ready),
            Self::LeaderEnds { status, server, straggler } => {
                world.leader_ends(*status, false, *server, *straggler);
            }
            Self::ServerEnds => world.server_ends(),
            Self::StragglerEnds => world.straggler_ends(),
            Self::Scanned => world.scanned(),
            Self::JournalRead => world.journal_is_read(),
            Self::Upgrade => world.asks_for_upgrade(),
            Self::ProgramChecked(true) => world.program_checked(Ok(Checked::CanTakeOver)),
            Self::ProgramChecked(false) => world.program_checked(Err(String::new())),
            Self::ServerClosed => world.server_closed(),
            Self::NotExecuted => world.not_executed(),
            Self::TakesOver => world.takes_over(),
            Self::Fires(timer) => {
                if *timer == Timer::Prepare {
                    // The supervisor drops the old preparation when another config is to be
                    // prepared.
                    world.preparing = None;
                }
                world.happens(Event::Timer(*timer));
            }
            Self::Term => world.happens(Event::Terminate),
            Self::Interrupt => world.happens(Event::Forward(2)),
            Self::Crash => world.comes_back(),
        }
    }
}

/// No time passes in the model, so the timer fires too early; that it is set right is an invariant.
const RESUME_AFTER: u64 = 1000;

/// The requests that are tried: with a lower, an equal, a higher, and without a sequence.
pub(super) fn requests(world: &World, sequences: u64) -> Vec<Request> {
    if world.lifecycle.is_deciding() {
        return vec![];
    }
    let mut bodies = vec![];
    for sequence in 1..=sequences {
        bodies.push(stop(sequence));
        // The drain of this stop ends early.
        bodies.push(stop_within(sequence, None, Some(0)));
        bodies.push(start(sequence));
        bodies.push(start_with(sequence, OTHER));
    }
    if world.lifecycle.intent().fencing.sequence < sequences {
        bodies.push(stop(0));
        bodies.push(start_last_good(0));
        bodies.push(stop_resuming(0, RESUME_AFTER, None));
        bodies.push(stop_resuming(0, RESUME_AFTER, Some(OTHER)));
        bodies.push(stop_and_exit(0));
    }
    bodies
}

/// The drains ahead of a stop that are tried.
pub(super) fn drains_ahead(world: &World, sequences: u64) -> Vec<Move> {
    let highest = if world.lifecycle.is_deciding() { 0 } else { sequences };
    (1..=highest).map(Move::DrainsAhead).collect()
}

/// Everything else that can happen.
pub(super) fn other_moves(world: &World) -> Vec<Move> {
    if world.executing {
        // Nothing can come in between.
        return vec![Move::TakesOver, Move::NotExecuted];
    }
    let mut moves = vec![Move::Term, Move::Interrupt];
    if !world.lifecycle.is_deciding() {
        moves.push(Move::Upgrade);
    }
    if world.checking {
        moves.extend([Move::ProgramChecked(true), Move::ProgramChecked(false)]);
    }
    if world.closing {
        moves.push(Move::ServerClosed);
    }
    if world.preparing.is_some() {
        moves.extend([Move::Prepared, Move::PrepareFails]);
    }
    if world.reading {
        moves.push(Move::JournalRead);
    } else if !world.writing.is_empty() {
        moves.extend([Move::Written, Move::WriteFails]);
    }
    if world.spawning.is_some() {
        moves.extend([Move::Spawned, Move::SpawnFails, Move::SpawnLacks, Move::ConfigOutdated]);
    }
    if world.scan {
        moves.push(Move::Scanned);
    }
    moves.extend(world.lifecycle.timers().map(|(timer, _)| Move::Fires(timer)));
    if world.engine.leader != Life::Gone {
        // If both are left, either may end before the next scan, so this covers leaving only one.
        for left in [false, true] {
            let status = ExitStatus::Code(1);
            moves.push(Move::LeaderEnds { status, server: left, straggler: left });
        }
    }
    if world.engine.server != Life::Gone {
        moves.push(Move::ServerEnds);
    }
    if world.engine.straggler != Life::Gone {
        moves.push(Move::StragglerEnds);
    }
    if is_unready(world) {
        moves.push(Move::Ready);
    }
    moves
}

/// The next step if nothing fails; none when there is nothing left to do.
pub(super) fn expected_move(world: &World) -> Option<Move> {
    if world.executing {
        return Some(Move::TakesOver);
    }
    if world.checking {
        return Some(Move::ProgramChecked(true));
    }
    if world.closing {
        return Some(Move::ServerClosed);
    }
    if world.preparing.is_some() {
        return Some(Move::Prepared);
    }
    if world.reading {
        return Some(Move::JournalRead);
    }
    if !world.writing.is_empty() {
        return Some(Move::Written);
    }
    if world.spawning.is_some() {
        return Some(Move::Spawned);
    }
    if world.scan {
        return Some(Move::Scanned);
    }
    if world.engine.leader == Life::Signalled {
        let status = ExitStatus::Code(143);
        return Some(Move::LeaderEnds { status, server: false, straggler: false });
    }
    if world.engine.server == Life::Signalled {
        return Some(Move::ServerEnds);
    }
    if world.engine.straggler == Life::Signalled {
        return Some(Move::StragglerEnds);
    }
    // A start that was refused waits for another config.
    let waits = world.lifecycle.awaits_config();
    let mut timers = world.lifecycle.timers().map(|(timer, _)| timer);
    if let Some(timer) = timers.find(|timer| *timer != Timer::Resume || !waits) {
        return Some(Move::Fires(timer));
    }
    is_unready(world).then_some(Move::Ready)
}

fn is_unready(world: &World) -> bool {
    world.lifecycle.phase() == Phase::Starting && world.lifecycle.policy().probe
}
