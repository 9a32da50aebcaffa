//! A stop with `exit`: the manager ends when the engine is stopped.

use super::scenario::{done, on_exit, start, stop, stop_and_exit, under_way};
use super::world::World;
use crate::lifecycle::{OnExit, Phase, Policy};
use stayput_api::Code;

#[test]
fn the_manager_ends_with_0_when_the_engine_is_stopped_and_the_next_one_waits() {
    for policy in [OnExit::Exit, OnExit::Restart, OnExit::Hold] {
        let mut world = World::running(on_exit(policy));
        assert_eq!(world.answer_to(stop_and_exit(1)), under_way(1));
        assert_eq!(world.exit, None);
        world.obeys();
        assert_eq!(world.exit, Some(0), "{policy:?}");
        world.comes_back();
        world.works();
        assert_eq!((world.phase(), world.spawns(), world.exit), (Phase::Stopped, 0, None));
        assert_eq!(world.answer_to(stop_and_exit(1)), done(1), "a retry does not end it again");
        assert_eq!(world.exit, None);
        assert_eq!(world.answer_to(start(2)), under_way(2));
    }
}

#[test]
fn it_is_answered_before_the_manager_ends_at_once() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(stop_and_exit(2)), done(2));
    assert_eq!(world.exit, Some(0));
}

#[test]
fn it_is_refused_without_a_journal() {
    let mut world = World::running(Policy { journal: false, ..Policy::default() });
    assert_eq!(world.answer_to(stop_and_exit(5)), Err(Code::NoJournal));
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.answer_to(stop(4)), Err(Code::StaleSequence), "as after every refusal");
}

#[test]
fn a_later_stop_without_it_counts() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop_and_exit(1)), under_way(1));
    assert_eq!(world.answer_to(stop(2)), under_way(2));
    world.obeys();
    assert_eq!((world.phase(), world.exit), (Phase::Stopped, None));
}
