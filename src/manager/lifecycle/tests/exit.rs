//! A stop with `exit`: the manager ends when the engine is stopped.

use super::scenario::{done, on_exit, start, stop, stop_and_exit, under_way};
use super::world::World;
use crate::lifecycle::{Event, ExitStatus, OnExit, Phase, Policy};

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
fn a_later_stop_without_it_counts() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop_and_exit(1)), under_way(1));
    assert_eq!(world.answer_to(stop(2)), under_way(2));
    world.obeys();
    assert_eq!((world.phase(), world.exit), (Phase::Stopped, None));
}

/// While the journal cannot be written, the manager does not end after the stop.
#[test]
fn a_start_that_is_accepted_first_takes_the_end_back() {
    let mut world = World::running(Policy { probe: true, ..Policy::default() });
    assert_eq!(world.answer_to(stop_and_exit(1)), under_way(1));
    world.asks(start(2));
    world.works_without_disk();
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    world.works_without_disk();
    assert_eq!((world.phase(), world.exit), (Phase::Stopped, None));
    assert_eq!(world.answer_to(start(3)), under_way(3));
    world.happens(Event::Ready);
    world.works();
    world.asks_for_upgrade();
    assert!(world.checking, "it does not end, so another program may take over");
}
