//! A drain ahead of a stop: it ends by itself, and never stops anything.

use super::scenario::{on_exit, start, stop, stop_within, under_way};
use super::world::World;
use crate::lifecycle::{Effect, OnExit, Phase, Timer};
use stayput_api::{Accepted, Code, Refusal};

fn running() -> World {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.forget();
    world
}

fn code(reply: Result<Accepted, Refusal>) -> Option<Code> {
    reply.err().map(|refusal| refusal.code)
}

#[test] // proves STOP-20
fn without_a_stop_the_engine_is_ready_again() {
    let mut world = running();
    assert_eq!(code(world.drains_ahead(1)), None);
    assert!(world.lifecycle.drains_ahead());
    assert_eq!(world.lifecycle.reason().expect("a reason").code, "draining");
    assert_eq!(world.due(Timer::Drain), Some(world.now + 10_000));
    assert_eq!(world.lifecycle.intent().fencing.sequence, 0, "nothing is decided");
    world.waits_for(Timer::Drain);
    assert!(!world.lifecycle.drains_ahead());
    assert_eq!((world.phase(), world.lifecycle.reason()), (Phase::Running, None));
    assert_eq!(world.effects, [], "nothing was sent to the engine or written down");
}

#[test] // proves STOP-21
fn a_drain_has_an_effect_once() {
    let mut world = running();
    assert_eq!(code(world.drains_ahead(1)), None);
    let due = world.due(Timer::Drain);
    world.now += 1;
    assert_eq!(code(world.drains_ahead(1)), None);
    assert_eq!(world.due(Timer::Drain), due, "not longer");
    world.waits_for(Timer::Drain);
    assert_eq!(code(world.drains_ahead(1)), None);
    assert!(!world.lifecycle.drains_ahead(), "not again");
    assert_eq!(code(world.drains_ahead(2)), None);
    assert!(world.lifecycle.drains_ahead(), "the next stop is another one");
}

#[test]
fn the_stop_that_follows_has_its_own_drain() {
    let mut world = running();
    assert_eq!(code(world.drains_ahead(1)), None);
    assert_eq!(world.answer_to(stop_within(1, None, Some(0))), under_way(1));
    assert_eq!(world.phase(), Phase::Signalled);
    assert_eq!(world.due(Timer::Drain), None);

    let mut world = running();
    assert_eq!(code(world.drains_ahead(1)), None);
    assert_eq!(world.answer_to(stop_within(1, None, Some(3))), under_way(1));
    assert_eq!((world.phase(), world.due(Timer::Drain)), (Phase::Draining, Some(world.now + 3)));
}

#[test] // proves STOP-20
fn a_start_makes_it_ready_at_once() {
    let mut world = running();
    assert_eq!(code(world.drains_ahead(1)), None);
    assert_eq!(world.answer_to(start(2)).expect("accepted").sequence, 2);
    assert!(!world.lifecycle.drains_ahead());
    assert_eq!(code(world.drains_ahead(1)), Some(Code::StaleSequence), "a late one");
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::SignalLeader(_))));
}

#[test] // proves STOP-21
fn a_drain_after_its_stop_changes_nothing() {
    let mut world = running();
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    let before = world.lifecycle.clone();
    assert_eq!(code(world.drains_ahead(1)), None, "the stop was accepted, and it is not ready");
    assert_eq!(world.lifecycle, before);
}
