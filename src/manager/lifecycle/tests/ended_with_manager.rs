//! The container is killed as a whole: the next manager finds a run without an end.

use super::scenario::{start, stop, under_way};
use super::world::World;
use crate::lifecycle::{Event, HeldCode, Phase, Policy};
use stayput_api::{Desired, ExitReason};

#[test]
fn the_run_without_an_end_is_the_last_exit() {
    let mut world = World::running(Policy::default());
    world.now += 60_000;
    world.comes_back();
    world.works();
    let exit = world.lifecycle.last_exit().unwrap();
    assert_eq!((exit.code, exit.signal, exit.shell_code()), (None, None, None));
    assert_eq!(exit.reason, ExitReason::EndedWithManager);
    assert_eq!((exit.run.as_str(), exit.ran_ms, exit.took_ms), ("run", 60_000, 0));
    assert_eq!(world.disk.as_ref().unwrap().last_exit.as_ref(), Some(exit));
    assert_eq!(world.phase(), Phase::Starting, "it was ready, so it is started again");
}

#[test]
fn an_end_that_was_written_down_is_kept() {
    let mut world = World::stopped(Policy::default());
    let exit = world.lifecycle.last_exit().cloned();
    world.comes_back();
    world.works();
    assert_eq!(world.lifecycle.last_exit().cloned(), exit);
}

#[test]
fn a_stop_that_was_under_way_is_done_and_the_end_is_not_called_clean() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.comes_back();
    world.works();
    assert_eq!((world.phase(), world.lifecycle.desired()), (Phase::Stopped, Desired::Stopped));
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::EndedWithManager);
}

/// Killed this many times in a row while it starts.
fn killed(world: &mut World, times: usize) {
    for _ in 0..times {
        world.comes_back();
        world.works();
    }
}

#[test]
fn a_requested_start_that_never_was_ready_is_held_after_three_such_ends() {
    let mut world = World::started_by_request(Policy::default());
    killed(&mut world, 2);
    assert_eq!(world.phase(), Phase::Starting);
    killed(&mut world, 1);
    assert_eq!((world.phase(), world.spawns(), world.exit), (Phase::Failed, 2, None));
    let held = world.lifecycle.intent().held.as_ref().unwrap();
    assert_eq!(held.code, HeldCode::EndedWithManager);
    assert!(held.message.contains("3 times") && held.message.contains("memory"), "{held:?}");
    killed(&mut world, 1);
    assert_eq!(world.phase(), Phase::Failed, "also by the next container");
    assert_eq!(world.answer_to(start(3)), under_way(3));
    assert_eq!(world.lifecycle.intent().unseen_ends, 0);
}

#[test] // proves JOURNAL-6
fn being_ready_or_a_request_begins_the_count_anew() {
    let mut world = World::started_by_request(Policy::default());
    killed(&mut world, 2);
    world.happens(Event::Ready);
    world.works();
    killed(&mut world, 5);
    assert_eq!(world.phase(), Phase::Starting, "it was ready: the kubelet's back-off applies");

    let mut world = World::started_by_request(Policy::default());
    killed(&mut world, 2);
    assert_eq!(world.answer_to(start(3)), under_way(3));
    killed(&mut world, 2);
    assert_eq!(world.phase(), Phase::Starting);
}
