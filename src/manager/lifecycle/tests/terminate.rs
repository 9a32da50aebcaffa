//! TERM to the manager, in every phase.

use super::scenario::{on_exit, start, start_with, stop, stop_within, under_way};
use super::world::{MOUNTED, World};
use crate::lifecycle::{Effect, Event, ExitStatus, OnExit, Phase, Policy, Timer};
use stayput_api::{Code, Desired};

fn termed(mut world: World) -> World {
    world.happens(Event::Terminate);
    world
}

#[test]
fn a_running_engine_is_stopped_and_its_code_is_ours() {
    let mut world = termed(World::running(Policy::default()));
    assert!(world.did(&Effect::SignalLeader(15)));
    assert_eq!(world.due(Timer::Grace), None, "the kubelet sets the limit");
    world.obeys();
    assert_eq!(world.exit, Some(143));
    assert_eq!(world.disk.as_ref().unwrap().intent.desired, Desired::Running);
}

#[test]
fn a_success_exit_maps_a_clean_stop_of_ours_and_nothing_else() {
    let policy = Policy { success_exit: vec![143, 137, 1], ..Policy::default() };
    let mut world = termed(World::running(policy.clone()));
    world.obeys();
    assert_eq!(world.exit, Some(0));

    let mut world = termed(World::running(policy.clone()));
    world.leader_ends(ExitStatus::Signal(9), false, false, false);
    world.works();
    assert_eq!(world.exit, Some(137), "137 stays 137");

    let mut world = World::running(policy);
    world.dies(1);
    assert_eq!(world.exit, Some(1), "an end of its own is not a stop");
}

#[test]
fn the_bound_holds_drain_and_grace_together() {
    let policy = Policy { drain: 10, termination_grace: Some(30), ..Policy::default() };
    let mut world = termed(World::running(policy.clone()));
    world.waits_for(Timer::Drain);
    assert_eq!(world.due(Timer::Grace), Some(30));

    let mut world = World::running(policy);
    world.answer_to(stop(1)).unwrap();
    world.now = 4;
    let mut world = termed(world);
    world.waits_for(Timer::Drain);
    assert_eq!(world.due(Timer::Grace), Some(34), "counted from TERM");
}

/// The limit would be over when the engine gets its stop signal.
#[test] // proves STOP-34
fn a_drain_of_a_request_is_cut_to_that_of_the_settings() {
    for (drain, bound) in [(0, Some(30)), (10, Some(30)), (0, None), (10, None)] {
        let policy = Policy { drain, termination_grace: bound, ..Policy::default() };
        let mut world = World::running(policy);
        world.answer_to(stop_within(1, Some(500), Some(100))).unwrap();
        world.now = 4;
        let mut world = termed(world);
        if drain > 0 {
            assert_eq!(world.due(Timer::Drain), Some(4 + drain));
            world.waits_for(Timer::Drain);
        }
        assert!(world.did(&Effect::SignalLeader(15)), "{drain} {bound:?}");
        assert_eq!(world.due(Timer::Grace), Some(bound.map_or(world.now + 500, |bound| 4 + bound)));
    }
}

#[test]
fn a_second_term_shortens() {
    let mut world = termed(World::running(Policy { drain: 10, ..Policy::default() }));
    world.happens(Event::Terminate);
    assert_eq!(world.phase(), Phase::Signalled);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 2_000));

    let mut world = termed(World::running(Policy::default()));
    world.happens(Event::Terminate);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 2_000));
}

#[test]
fn a_second_term_does_not_wait_for_the_journal() {
    let mut world = World::stopped(Policy::default());
    world.asks(start_with(2, "sha256:other"));
    world.prepared(world.verify());
    world.happens(Event::Terminate);
    assert_eq!(world.exit, None, "a request is not answered yet");
    world.happens(Event::Terminate);
    assert_eq!((world.exit, world.replies.len()), (Some(0), 1));
}

#[test]
fn a_term_during_a_stop_ends_the_manager_when_the_engine_has_ended() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop(1)).unwrap();
    let mut world = termed(world);
    assert_eq!(world.exit, None);
    world.obeys();
    assert_eq!(world.exit, Some(143));
}

#[test]
fn a_stop_that_is_being_written_is_answered_first() {
    let mut world = World::started_by_request(Policy::default());
    world.dies(78);
    world.asks(stop(3));
    let mut world = termed(world);
    assert_eq!(world.exit, None);
    world.works();
    assert!(world.answer().unwrap().done);
    assert_eq!(world.exit, Some(78));
}

#[test]
fn it_beats_a_start_that_is_being_verified_or_written() {
    for written in [false, true] {
        let mut world = World::stopped(Policy::default());
        world.asks(start(2));
        if written {
            world.prepared(world.verify());
        }
        let mut world = termed(world);
        world.works();
        assert_eq!(world.answer().unwrap_err().code, Code::Terminating);
        assert_eq!((world.spawns(), world.exit), (0, Some(0)));
        world.comes_back();
        world.works();
        assert_eq!(world.phase(), Phase::Stopped, "a refused start has no effect");
        assert_eq!(world.answer_to(start(2)), under_way(2), "judged afresh");
    }
}

#[test]
fn an_engine_that_is_just_being_spawned_is_stopped_when_it_is_there() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.prepared(world.verify());
    world.write_ends(true);
    let mut world = termed(world);
    assert_eq!(world.exit, None);
    world.works();
    assert_eq!(world.phase(), Phase::Signalled);
    assert_eq!(world.answer().unwrap(), under_way(2).unwrap());
    world.obeys();
    assert_eq!(world.exit, Some(143));
}

#[test]
fn a_spawn_that_fails_or_is_too_late_after_term_ends_the_manager() {
    for outdated in [false, true] {
        let mut world = World::new(on_exit(OnExit::Restart));
        world.boot();
        world.prepared(world.verify());
        let mut world = termed(world);
        if outdated {
            world.config_outdated();
        } else {
            world.spawn_fails();
        }
        world.works();
        assert_eq!(world.exit, Some(if outdated { 0 } else { 127 }));
    }
}

#[test]
fn a_config_that_arrives_after_term_spawns_nothing() {
    let mut world = World::new(Policy::default());
    world.boot();
    let mut world = termed(world);
    world.works();
    assert_eq!((world.spawns(), world.exit), (0, Some(0)));
}

#[test]
fn a_start_after_term_is_refused() {
    let mut world = termed(World::running(Policy::default()));
    assert_eq!(world.answer_to(start_with(1, MOUNTED)), Err(Code::Terminating));
}

#[test]
fn in_backoff_and_held_the_engines_code_is_ours() {
    let mut world = World::running(on_exit(OnExit::Restart));
    world.dies(5);
    assert_eq!(termed(world).exit, Some(5));
    let mut world = World::running(on_exit(OnExit::Hold));
    world.dies(6);
    assert_eq!(termed(world).exit, Some(6));
}

#[test]
fn a_tree_that_survives_kill_does_not_keep_the_manager() {
    let policy = Policy { thread_dump: false, termination_grace: Some(5), ..Policy::default() };
    let mut world = termed(World::running(policy));
    world.waits_for(Timer::Grace);
    world.waits_for(Timer::Kill);
    world.works();
    assert_eq!((world.phase(), world.exit), (Phase::Stuck, Some(137)));
}

#[test]
fn a_stuck_engine_does_not_keep_the_manager_either() {
    let mut world = World::running(Policy { thread_dump: false, ..Policy::default() });
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    world.waits_for(Timer::Kill);
    assert_eq!(world.exit, None, "no TERM was sent");
    assert_eq!(termed(world).exit, Some(137));
}
