//! The defects of ECK's process manager of 2019 that concern the state machine, one test each.
//! "There" is that process manager.

use super::scenario::{done, on_exit, start, start_with, stop, under_way};
use super::world::{OTHER, World};
use crate::lifecycle::{Effect, Event, ExitStatus, OnExit, Phase, Policy, Recovered, Timer};
use stayput_api::{Code, ExitReason, State};

fn signals(world: &World) -> usize {
    world
        .effects
        .iter()
        .filter(|effect| {
            matches!(
                effect,
                Effect::SignalLeader(_)
                    | Effect::SignalServer(_)
                    | Effect::TermStragglers
                    | Effect::KillTree
            )
        })
        .count()
}

/// There: "stopping" stayed in the file for ever; start gave 500 and stop gave 202, until the pod
/// was deleted.
#[test]
fn a_manager_killed_while_stopping_or_killing_recovers_with_one_call() {
    for killing in [false, true] {
        let mut world = World::running(Policy { thread_dump: false, ..Policy::default() });
        world.answer_to(stop(1)).unwrap();
        if killing {
            world.waits_for(Timer::Grace);
            assert_eq!(world.lifecycle.state(), State::Killing);
        }
        world.comes_back();
        world.works();
        assert_eq!(world.answer_to(stop(1)), done(1));
        assert_eq!(world.answer_to(start(2)), under_way(2));
    }
}

/// There: kill(-0) hit the manager's own process group.
#[test]
fn without_an_engine_nobody_is_signalled_and_a_stop_is_done() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(stop(2)), done(2));
    world.happens(Event::Forward(1));
    assert_eq!(signals(&world), 0);

    let mut world = World::started_by_request(Policy::default());
    world.dies(1);
    world.forget();
    assert_eq!(world.answer_to(stop(3)), done(3));
    assert_eq!(signals(&world), 0);
}

/// There: an engine that ignored TERM stayed in "stopping".
#[test]
fn an_engine_that_ignores_term_is_killed_when_its_grace_is_over() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    world.waits_for(Timer::Dump);
    assert!(world.did(&Effect::KillTree));
}

/// There: a torn or empty file started a node that was to stay stopped.
#[test]
fn a_torn_journal_starts_nothing() {
    let mut world = World::new(Policy::default());
    world.happens(Event::Boot(Recovered::Unreadable("it is empty".to_owned())));
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Failed, 0));
}

/// There: exit 1 when the pod was deleted cleanly.
#[test]
fn term_while_stopped_ends_with_0_also_in_a_later_container() {
    let mut world = World::stopped(Policy::default());
    world.happens(Event::Terminate);
    assert_eq!(world.exit, Some(0));
    world.comes_back();
    world.works();
    world.happens(Event::Terminate);
    assert_eq!(world.exit, Some(0));
}

/// There: 255, so an engine that was killed for memory could not be recognized.
#[test]
fn a_signal_death_keeps_its_code_and_memory_its_name() {
    let mut world = World::running(Policy::default());
    world.leader_ends(ExitStatus::Signal(9), true, false, false);
    world.works();
    assert_eq!(world.exit, Some(137));
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::Oom);
}

/// There: "started" from fork on, so that a start counted as good even if the engine ended at once.
#[test]
fn a_start_is_done_only_when_the_engine_is_ready() {
    let mut world = World::started_by_request(Policy::default());
    assert_eq!(world.lifecycle.state(), State::Starting);
    assert_eq!(world.answer_to(start(2)), under_way(2));
    world.dies(7);
    assert_eq!(world.answer_to(start(2)), Err(Code::StartFailed));
}

/// There: an engine that crashed was started for ever, without back-off.
#[test]
fn a_crash_loop_backs_off_and_ends() {
    let mut world = World::running(on_exit(OnExit::Restart));
    while world.phase() != Phase::Failed {
        world.dies(1);
        if world.phase() == Phase::Backoff {
            world.waits_for(Timer::Backoff);
            world.works();
        }
    }
    assert_eq!(world.spawns(), 5);
    let message = world.lifecycle.reason().unwrap().message;
    assert!(message.ends_with("; start it again when the cause is repaired"), "{message}");
}

/// There: the check of the checksum and the start were two requests.
#[test]
fn a_start_on_a_config_that_is_not_mounted_starts_nothing() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start_with(2, OTHER)), Err(Code::ChecksumMismatch));
    assert_eq!(world.spawns(), 0);
}

/// There it was right already: 40 starts at once, one engine.
#[test]
fn forty_starts_start_one_engine() {
    let mut world = World::stopped(Policy::default());
    for sequence in 2..42 {
        assert!(world.answer_to(start(sequence)).is_ok());
    }
    assert_eq!(world.spawns(), 1);
}

/// There: every stop ended the container, and with it the API.
#[test]
fn a_stop_and_a_start_do_not_end_the_manager() {
    for policy in [OnExit::Exit, OnExit::Restart, OnExit::Hold] {
        let mut world = World::stopped(on_exit(policy));
        world.answer_to(start(2)).unwrap();
        world.happens(Event::Ready);
        assert_eq!((world.phase(), world.exit), (Phase::Running, None));
    }
}
