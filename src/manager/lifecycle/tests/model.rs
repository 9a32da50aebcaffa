//! The shipped lifecycle in every situation: breadth first from boot, with a disk, a config, an
//! engine and callers that may do anything, and a container that may be killed at any time.
//!
//! Time stands still and timers fire in any order, so no result depends on how long something
//! takes. From every state that is found, if nothing fails any more, the engine can be stopped and
//! started. The long form: `cargo test --release -p stayput-manager model -- --ignored`.

mod invariants;
mod moves;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hash};
use std::thread;

use foldhash::quality::FixedState;

use super::held::without_an_answer;
use super::scenario::{start, stop};
use super::world::World;
use crate::lifecycle::commit::{Act, Deciding};
use crate::lifecycle::{Intent, Limits, OnExit, Origin, Phase, Policy, Request};
use invariants::Memory;
use moves::{Move, drains_ahead, expected_move, other_moves, requests};

/// How far the search goes.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    requests: u8,
    crashes: u8,
    sequences: u64,
    /// No further than a late journal makes a difference.
    only_late: bool,
}

#[derive(Debug, Clone, Hash)]
struct Node {
    world: World,
    memory: Memory,
    requests: u8,
    crashes: u8,
}

impl Node {
    fn fingerprint(&self) -> u64 {
        fingerprint(self)
    }

    fn moves(&self, bounds: &Bounds) -> Vec<Move> {
        if bounds.only_late && self.is_as_after_another_boot() {
            return vec![];
        }
        let ended = self.world.exit.is_some();
        let mut moves = if ended { vec![] } else { other_moves(&self.world) };
        if self.crashes < bounds.crashes {
            moves.push(Move::Crash);
        }
        if self.requests < bounds.requests && !ended {
            moves.extend(requests(&self.world, bounds.sequences).into_iter().map(Move::Asks));
            moves.extend(drains_ahead(&self.world, bounds.sequences));
        }
        moves
    }

    /// The journal was followed, or a start was made without it.
    fn is_as_after_another_boot(&self) -> bool {
        let World { lifecycle, writing, .. } = &self.world;
        let is_settled = lifecycle.deciding.is_none() && writing.is_empty();
        lifecycle.late_journal.is_none() && (lifecycle.run.is_some() || is_settled)
    }

    fn after(&self, step: &Move) -> Result<Self, (&'static str, Box<Self>)> {
        let mut next = self.clone();
        step.happens_in(&mut next.world);
        match step {
            Move::Asks(_) | Move::DrainsAhead(_) => next.requests += 1,
            Move::Crash => next.crashes += 1,
            _ => {}
        }
        let verdict = next.memory.check(&self.world, step, &next.world);
        simplify(&mut next.world);
        match verdict {
            Ok(()) => Ok(next),
            Err(broken) => Err((broken, Box::new(next))),
        }
    }
}

/// The standard library's hasher would take a third of the search without optimization.
fn fingerprint(value: &impl Hash) -> u64 {
    FixedState::default().hash_one(value)
}

/// Clears the fields that no decision depends on, so that equal states are found equal.
fn simplify(world: &mut World) {
    fn plain(intent: &mut Intent) {
        if let Some(held) = &mut intent.held {
            held.message.clear();
        }
    }
    world.effects.clear();
    world.replies.clear();
    if let Some(Deciding::Spawning { origin: Origin::Resume(before), .. }) =
        &mut world.lifecycle.deciding
    {
        plain(before);
    }
    let lifecycle = &mut world.lifecycle;
    if let Some(Deciding::Resuming { mounted: Some(message) }) = &mut lifecycle.deciding {
        message.clear();
    }
    if let Some(refused) = &mut lifecycle.resume_refused {
        refused.message.clear();
    }
    lifecycle.starts = 0;
    lifecycle.last_exit = None;
    lifecycle.own_code = lifecycle.own_code.and(Some(1));
    lifecycle.exit = lifecycle.exit.and(Some(1));
    // Between the first restart and the last but one, nothing is different.
    if !lifecycle.own_ends.is_empty() {
        let ends = lifecycle.own_ends.len().max(Limits::MAX_RESTARTS - 1);
        lifecycle.own_ends = vec![0; ends];
    }
    plain(&mut lifecycle.intent);
    if let Some(ending) = &mut lifecycle.ending {
        ending.forget_names();
    }
    let journal = &mut lifecycle.journal;
    // Versions of the journal are only compared, so only their order counts.
    let mut versions: BTreeSet<u64> =
        [0, journal.intent, journal.answered, journal.durable, journal.given].into();
    versions.extend(journal.unrecorded_end);
    versions.extend(world.writing.iter().map(|(version, _)| *version));
    if let Some(Deciding::Committing { proposed, version, act, pending }) = &mut lifecycle.deciding
    {
        versions.insert(*version);
        plain(proposed);
        plain(&mut pending.before);
        if let Act::Refuse(refusal) = act {
            refusal.message.clear();
        }
    }
    let ranks: BTreeMap<u64, u64> = versions.into_iter().zip(0..).collect();
    journal.intent = ranks[&journal.intent];
    journal.answered = ranks[&journal.answered];
    journal.durable = ranks[&journal.durable];
    journal.given = ranks[&journal.given];
    journal.unrecorded_end = journal.unrecorded_end.map(|version| ranks[&version]);
    if let Some(Deciding::Committing { version, .. }) = &mut lifecycle.deciding {
        *version = ranks[version];
    }
    for (version, saved) in &mut world.writing {
        *version = ranks[version];
        saved.last_exit = None;
        plain(&mut saved.intent);
    }
    if let Some(saved) = &mut world.disk {
        saved.last_exit = None;
        plain(&mut saved.intent);
    }
}

/// All states that were found, and from which state each was reached.
struct Search {
    known: BTreeSet<u64>,
    came_from: Vec<(usize, Option<Move>)>,
    phases: BTreeSet<Phase>,
    /// States from which a good end is known.
    fine: BTreeSet<u64>,
}

impl Search {
    fn run(world: World, memory: Memory, bounds: &Bounds) -> Self {
        let first = Node { world, memory, requests: 0, crashes: 0 };
        let mut search = Self {
            known: BTreeSet::from([first.fingerprint()]),
            came_from: vec![(0, None)],
            phases: BTreeSet::new(),
            fine: BTreeSet::new(),
        };
        let mut layer = vec![(0, first)];
        while !layer.is_empty() {
            let mut next = vec![];
            for (index, node) in layer {
                search.phases.insert(node.world.phase());
                search.ends_well(index, &node.world);
                for step in node.moves(bounds) {
                    let after = node.after(&step).unwrap_or_else(|(broken, after)| {
                        search.fail(broken, index, std::slice::from_ref(&step), &after.world)
                    });
                    if search.known.insert(after.fingerprint()) {
                        search.came_from.push((index, Some(step)));
                        next.push((search.came_from.len() - 1, after));
                    }
                }
            }
            layer = next;
        }
        search
    }

    /// If nothing fails any more: it comes to rest, a stop stops, and a start starts.
    fn ends_well(&mut self, index: usize, world: &World) {
        let mut world = world.clone();
        let mut path = vec![];
        while !self.fine.contains(&fingerprint(&world)) {
            path.push(fingerprint(&world));
            if !self.goes_on(index, &mut world, path.len()) {
                self.obeys(index, &mut world, stop(0), Phase::Stopped);
                self.obeys(index, &mut world, start(0), Phase::Running);
                break;
            }
        }
        self.fine.extend(path);
    }

    fn obeys(&self, index: usize, world: &mut World, request: Request, phase: Phase) {
        world.asks(request);
        for steps in 0.. {
            if !self.goes_on(index, world, steps) {
                break;
            }
        }
        if world.phase() != phase {
            self.fail("a request has another result", index, &[], world);
        }
    }

    /// Does the next step; false if there is none.
    fn goes_on(&self, index: usize, world: &mut World, steps: usize) -> bool {
        if steps > 100 {
            self.fail("it never comes to rest", index, &[], world);
        }
        match expected_move(world) {
            _ if world.exit.is_some() => world.comes_back(),
            Some(step) => step.happens_in(world),
            None => {
                let terminating = world.lifecycle.is_terminating();
                if terminating || world.lifecycle.is_deciding() || world.open.is_some() {
                    self.fail("it waits for nothing", index, &[], world);
                }
                return false;
            }
        }
        if let Some(complaint) = world.broken {
            self.fail(complaint, index, &[], world);
        }
        simplify(world);
        true
    }

    fn fail(&self, broken: &str, index: usize, last: &[Move], world: &World) -> ! {
        let mut trace: Vec<String> = last.iter().map(|step| format!("{step:?}")).collect();
        let mut at = index;
        while let (before, Some(step)) = &self.came_from[at] {
            trace.push(format!("{step:?}"));
            at = *before;
        }
        trace.reverse();
        panic!("{broken}\n{}\n{world:#?}", trace.join("\n"));
    }
}

/// All searches at once.
#[allow(clippy::disallowed_macros, reason = "prints the number of states in the long form")]
fn check(searches: impl IntoIterator<Item = (Policy, Bounds)>) {
    let run = |policy: Policy, bounds: Bounds| {
        let on_exit = policy.on_exit;
        let mut world = World::new(policy);
        world.boot();
        let search = Search::run(world, Memory::default(), &bounds);
        println!("{on_exit:?}, {bounds:?}: {} states", search.known.len());
        let unseen = Phase::ALL.into_iter().filter(|phase| !search.phases.contains(phase));
        let unseen: Vec<Phase> = unseen.collect();
        let restarts = on_exit == OnExit::Restart;
        assert!(unseen.iter().all(|phase| *phase == Phase::Backoff && !restarts), "{unseen:?}");
    };
    thread::scope(|scope| {
        for (policy, bounds) in searches {
            scope.spawn(move || run(policy, bounds));
        }
    });
}

/// Every `on_exit`, each with different other settings.
fn policies() -> [Policy; 3] {
    let bounded = Policy { drain: 5, termination_grace: Some(20), ..Policy::default() };
    [
        Policy { on_exit: OnExit::Exit, drain: 5, ..Policy::default() },
        Policy { on_exit: OnExit::Hold, probe: true, ..bounded.clone() },
        Policy { on_exit: OnExit::Restart, keep_last_good: true, pin_config: true, ..bounded },
    ]
}

/// The bounds are small enough to finish in seconds.
#[test] // proves REQUEST-5, STOP-20
fn nothing_breaks_a_law_whatever_happens() {
    let [exit, hold, restart] = policies();
    let crash = Bounds { requests: 0, crashes: 1, sequences: 1, only_late: false };
    let nobody = Bounds { crashes: 0, ..crash };
    let request = Bounds { requests: 1, ..nobody };
    check([(exit.clone(), crash), (hold, crash), (restart, nobody), (exit, request)]);
}

#[test]
#[ignore = "minutes, in release"]
fn nothing_breaks_a_law_whatever_happens_to_two_requests() {
    let one = Bounds { requests: 1, crashes: 1, sequences: 1, only_late: false };
    let two = Bounds { requests: 2, crashes: 0, sequences: 2, only_late: false };
    let [exit, hold, _] = policies();
    check(policies().map(|policy| (policy, one)).into_iter().chain([(exit, two), (hold, two)]));
}

#[test] // proves REQUEST-2
#[allow(clippy::disallowed_macros, reason = "prints the number of states")]
fn nothing_breaks_a_law_while_a_late_journal_is_read() {
    for last in [start(5), stop(5)] {
        let memory = Memory::of(&last);
        let bounds = Bounds { requests: 2, crashes: 1, sequences: 1, only_late: true };
        let search = Search::run(without_an_answer(last), memory, &bounds);
        println!("{} states", search.known.len());
    }
}
