//! Which config counts as good, and which one an engine that comes back by itself runs on.

use super::scenario::{start, start_last_good, stop, stop_resuming};
use super::world::{MOUNTED, OTHER, World};
use crate::lifecycle::{Effect, Event, KeepAs, OnExit, Policy, Prepared, Timer};
use stayput_api::ConfigChoice;

fn keeping() -> Policy {
    Policy { keep_last_good: true, staged: true, probe: true, ..Policy::default() }
}

const KEPT: Effect = Effect::Keep(KeepAs::LastGood);

#[test]
fn a_config_becomes_the_last_good_one_when_the_engine_was_up_for_a_minute() {
    let mut world = World::starting(keeping());
    world.happens(Event::Ready);
    assert!(world.did(&Effect::Keep(KeepAs::Candidate)));
    assert_eq!(world.due(Timer::Prove), Some(world.now + 60_000));
    assert!(!world.did(&KEPT));
    world.waits_for(Timer::Prove);
    assert!(world.did(&KEPT));
}

#[test]
fn the_last_good_config_itself_proves_nothing() {
    let mut world = World::stopped(keeping());
    world.answer_to(start_last_good(2)).unwrap();
    world.happens(Event::Ready);
    assert!(!world.did(&Effect::Keep(KeepAs::Candidate)));
    assert_eq!(world.due(Timer::Prove), None);
}

#[test]
fn an_engine_that_ends_or_is_stopped_within_the_minute_proves_nothing() {
    let own_end = |world: &mut World| world.dies(1);
    let stopped = |world: &mut World| world.asks(stop(2));
    let terminated = |world: &mut World| world.happens(Event::Terminate);
    for end in [&own_end as &dyn Fn(&mut World), &stopped, &terminated] {
        let mut world = World::starting(Policy { on_exit: OnExit::Hold, ..keeping() });
        world.happens(Event::Ready);
        end(&mut world);
        world.works();
        assert_eq!(world.due(Timer::Prove), None);
        assert!(!world.did(&KEPT));
    }
}

fn pinning() -> Policy {
    Policy { pin_config: true, on_exit: OnExit::Restart, ..keeping() }
}

/// An engine that was told to run `OTHER`, while `MOUNTED` is mounted.
fn told_another_generation() -> World {
    let mut world = World::stopped(pinning());
    world.asks(start(2));
    assert_eq!(world.pinned, None, "a request means what it says");
    let told = Prepared { checksum: Some(OTHER.to_owned()), choice: ConfigChoice::Mounted };
    world.prepared(Ok(told));
    world.works();
    world.happens(Event::Ready);
    assert!(world.did(&Effect::Keep(KeepAs::Pinned)));
    world
}

#[test]
fn pinned_an_engine_that_comes_back_by_itself_runs_on_what_it_was_told_to_run() {
    let mut world = told_another_generation();
    world.dies(1);
    world.waits_for(Timer::Backoff);
    assert_eq!(world.pinned.as_deref(), Some(OTHER));
    world.works();
    assert_eq!(world.lifecycle.run().unwrap().checksum.as_deref(), Some(OTHER));

    let mut world = told_another_generation();
    world.comes_back();
    assert_eq!(world.pinned.as_deref(), Some(OTHER));
    world.works();
    assert_eq!(world.lifecycle.run().unwrap().checksum.as_deref(), Some(OTHER));
}

#[test]
fn pinned_a_start_after_a_stop_with_resume_after_runs_on_what_it_was_told_to_run() {
    for (checksum, pinned) in [(None, Some(OTHER)), (Some(MOUNTED), None)] {
        let mut world = told_another_generation();
        world.answer_to(stop_resuming(3, 60_000, checksum)).unwrap();
        world.obeys();
        world.waits_for(Timer::Resume);
        assert_eq!(world.pinned.as_deref(), pinned);
        world.works();
        let used = world.lifecycle.run().unwrap().checksum;
        assert_eq!(used.as_deref(), checksum.or(pinned));
    }
}

#[test]
fn pinned_a_request_takes_what_is_mounted_and_pins_that() {
    let mut world = told_another_generation();
    world.answer_to(stop(3)).unwrap();
    world.obeys();
    world.answer_to(start(4)).unwrap();
    world.comes_back();
    assert_eq!(world.pinned.as_deref(), Some(MOUNTED));
}

#[test]
fn the_first_config_of_a_pod_is_pinned_although_nobody_asked_for_it() {
    let mut world = World::starting(pinning());
    assert_eq!(world.pinned, None);
    world.comes_back();
    assert_eq!(world.pinned.as_deref(), Some(MOUNTED));
}
