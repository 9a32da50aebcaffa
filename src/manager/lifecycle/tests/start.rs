//! From a request, the journal or a first boot to a ready engine.

use super::scenario::{done, on_exit, start, start_last_good, start_with, stop, under_way};
use super::world::{MOUNTED, OTHER, World};
use crate::lifecycle::{Event, HeldCode, Limits, OnExit, Phase, Policy, Timer};
use stayput_api::{Code, ConfigChoice, Desired, Refusal, State};

#[test]
fn a_fresh_pod_starts_its_engine_without_being_asked() {
    let mut world = World::new(Policy::default());
    world.boot();
    assert_eq!(world.preparing, Some((ConfigChoice::Mounted, None)));
    world.works();
    assert_eq!(world.lifecycle.state(), State::Starting);
    assert_eq!(world.lifecycle.run().unwrap().checksum.as_deref(), Some(MOUNTED));
    assert_eq!(world.lifecycle.starts(), 1);
}

#[test]
fn without_a_probe_ready_means_it_lived_ten_seconds() {
    let mut world = World::starting(Policy::default());
    assert_eq!(world.due(Timer::Settle), Some(world.now + Limits::SETTLE_TIME));
    world.waits_for(Timer::Settle);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.lifecycle.timers().count(), 0, "no timer runs at rest");
}

#[test]
fn with_a_probe_only_the_probe_makes_it_ready() {
    let mut world = World::starting(Policy { probe: true, ..Policy::default() });
    assert_eq!(world.lifecycle.timers().count(), 0);
    world.happens(Event::Ready);
    assert_eq!(world.phase(), Phase::Running);
}

#[test]
fn a_start_with_the_mounted_checksum_is_verified_and_spawned_as_one_step() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start_with(2, MOUNTED)), under_way(2));
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn a_start_with_another_checksum_starts_nothing_and_stays_stopped() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start_with(2, OTHER)), Err(Code::ChecksumMismatch));
    assert_eq!((world.phase(), world.spawns()), (Phase::Stopped, 0));
    assert_eq!(world.lifecycle.desired(), Desired::Stopped);
}

#[test] // proves CONFIG-3
fn a_config_that_moves_again_and_again_holds_requests_for_a_limited_time() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    for _ in 0..6 {
        assert_eq!(world.replies.len(), 0);
        world.prepared(world.verify());
        world.write_ends(true);
        world.now += Limits::PREPARE_TIMEOUT / 6;
        world.config_outdated();
    }
    world.works();
    let refusal = world.answer().unwrap_err();
    assert_eq!(refusal.code, Code::StageFailed);
    assert!(refusal.message.contains("has changed for 60 s"), "{}", refusal.message);
    assert_eq!((world.phase(), world.lifecycle.starts()), (Phase::Stopped, 1), "no other one");
    assert_eq!(world.lifecycle.desired(), Desired::Stopped);
    assert_eq!(world.answer_to(stop(3)), done(3));
}

#[test] // proves CONFIG-3
fn a_config_that_moves_again_and_again_is_shown_where_nobody_asked_for_the_start() {
    let moves = |world: &mut World| {
        for _ in 0..6 {
            assert_eq!(world.phase(), Phase::Stopped);
            world.prepared(world.verify());
            world.now += Limits::PREPARE_TIMEOUT / 6;
            world.config_outdated();
        }
    };
    let mut world = World::new(on_exit(OnExit::Hold));
    world.boot();
    moves(&mut world);
    assert_eq!((world.phase(), world.preparing.clone()), (Phase::Backoff, None));
    let message = world.lifecycle.reason().unwrap().message;
    assert!(message.contains("has changed for 60 s"), "{message}");
    world.waits_for(Timer::Backoff);
    world.works();
    assert_eq!(world.phase(), Phase::Starting, "it no longer changes");

    let mut world = World::new(Policy::default());
    world.boot();
    moves(&mut world);
    world.works();
    assert_eq!(world.exit, Some(78), "as every config that cannot be used");
}

#[test]
fn a_config_that_moved_after_its_verification_is_verified_again() {
    let mut world = World::stopped(Policy::default());
    world.asks(start_with(2, MOUNTED));
    world.prepared(world.verify());
    world.write_ends(true);
    world.config_outdated();
    assert_eq!(world.preparing, Some((ConfigChoice::Mounted, Some(MOUNTED.to_owned()))));
    world.prepared(Err(Refusal::new(Code::ChecksumMismatch, "it moved")));
    world.works();
    assert_eq!(world.answer().unwrap_err().code, Code::ChecksumMismatch);
    let intent = &world.disk.as_ref().unwrap().intent;
    assert_eq!((world.phase(), intent.desired), (Phase::Stopped, Desired::Stopped));
}

#[test]
fn a_config_that_moved_does_not_lift_the_hold_of_a_refused_start() {
    let mut world = World::started_by_request(Policy::default());
    world.dies(78);
    world.asks(start(3));
    world.prepared(world.verify());
    world.write_ends(true);
    world.config_outdated();
    world.prepared(Err(Refusal::new(Code::ConfigUnknown, "unreadable")));
    world.works();
    assert!(world.lifecycle.intent().held.is_some());
    world.comes_back();
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Failed, 1), "only the first one");
}

#[test]
fn a_running_engine_answers_for_its_own_config() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(start_with(1, OTHER)), Err(Code::WrongConfig));
    assert_eq!(world.answer_to(start_last_good(2)), Err(Code::WrongConfig));
    assert_eq!(world.answer_to(start_with(3, MOUNTED)), done(3));
    assert_eq!(world.spawns(), 0);
}

#[test]
fn a_swap_while_an_unstaged_engine_reads_makes_its_config_uncertain() {
    let mut world = World::starting(Policy::default());
    world.happens(Event::ConfigChanged);
    let run = world.lifecycle.run().unwrap();
    assert_eq!((run.checksum, run.config_uncertain), (None, true));
    world.forget();
    world.happens(Event::ConfigChanged);
    assert_eq!(world.effects, [], "it cannot become more uncertain");
    world.works();
    assert_eq!(world.answer_to(start_with(1, MOUNTED)), Err(Code::WrongConfig));
}

#[test]
fn a_swap_between_the_last_check_and_the_news_of_the_spawn_counts() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.prepared(world.verify());
    world.write_ends(true);
    world.happens(Event::ConfigChanged);
    world.works();
    assert!(world.lifecycle.run().unwrap().config_uncertain);
}

#[test]
fn a_staged_or_ready_engine_does_not_mind_a_swap() {
    let mut world = World::starting(Policy { staged: true, ..Policy::default() });
    world.happens(Event::ConfigChanged);
    assert!(!world.lifecycle.run().unwrap().config_uncertain);
    let mut world = World::running(Policy::default());
    world.happens(Event::ConfigChanged);
    assert!(!world.lifecycle.run().unwrap().config_uncertain);
}

#[test]
fn a_rolled_back_engine_starts_its_last_good_config_again() {
    let mut world = World::stopped(Policy::default());
    world.answer_to(start_last_good(2)).unwrap();
    world.comes_back();
    assert_eq!(world.preparing, Some((ConfigChoice::LastGood, None)));
}

#[test]
fn a_command_that_cannot_be_executed_is_held_and_its_retry_says_so_too() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.prepared(world.verify());
    world.write_ends(true);
    world.spawn_fails();
    world.works();
    assert_eq!(world.answer().unwrap_err().code, Code::SpawnFailed);
    assert_eq!(world.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::SpawnFailed);
    assert_eq!(world.answer_to(start(2)), Err(Code::SpawnFailed));
    assert_eq!(world.spawns(), 1);
    assert_eq!(world.exit, None, "the caller still waits");
}

#[test]
fn a_start_during_a_stop_is_refused_and_the_stop_goes_on() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.answer_to(stop(1)).unwrap();
    assert_eq!(world.answer_to(start(2)), Err(Code::Stopping));
    world.obeys();
    assert_eq!(world.phase(), Phase::Stopped);
}

#[test]
fn a_stop_during_a_start_stops_it() {
    let mut world = World::started_by_request(Policy::default());
    assert_eq!(world.answer_to(stop(3)), under_way(3));
    world.obeys();
    assert_eq!((world.phase(), world.exit), (Phase::Stopped, None));
}
