//! A stop with `resumeAfter`: without a later request the manager starts the engine by itself.

use super::scenario::{done, on_exit, start, start_with, stop, stop_resuming, under_way};
use super::world::{MOUNTED, OTHER, World};
use crate::lifecycle::{Event, HeldCode, Limits, OnExit, Phase, Policy, Prepared, Timer};
use stayput_api::{Code, ConfigChoice, Desired};

const AFTER: u64 = 600_000;

/// Stopped by request 1, to be resumed.
fn stopped(checksum: Option<&str>) -> World {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop_resuming(1, AFTER, checksum)), under_way(1));
    world.now += 5_000;
    world.obeys();
    assert_eq!(world.phase(), Phase::Stopped);
    world.forget();
    world
}

#[test]
fn it_is_started_after_the_time_from_the_acceptance_on() {
    let mut world = stopped(None);
    assert_eq!(world.due(Timer::Resume), Some(AFTER));
    let resume = world.lifecycle.resume().unwrap();
    assert_eq!((resume.at.as_str(), resume.checksum), ("1970-01-01T00:10:00.000Z", None));
    let reason = world.lifecycle.reason().unwrap();
    assert_eq!(reason.code, "stopped_by_request");
    assert!(reason.message.contains("started again at 1970-01-01T00:10:00.000Z"), "{reason:?}");
    world.waits_for(Timer::Resume);
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1));
    assert_eq!((world.lifecycle.desired(), world.lifecycle.resume()), (Desired::Running, None));
    assert_eq!(world.disk.as_ref().unwrap().intent.desired, Desired::Running);
    assert_eq!(world.answer_to(stop_resuming(1, AFTER, None)), Err(Code::Superseded), "its retry");
    assert_eq!(world.lifecycle.timers().filter(|(timer, _)| *timer == Timer::Resume).count(), 0);
}

#[test] // proves STOP-23
fn only_an_accepted_request_cancels_it() {
    for (request, answer, resumes) in [
        (stop(2), done(2), false),
        (start(2), under_way(2), false),
        (start_with(2, OTHER), Err(Code::ChecksumMismatch), true),
        (stop_resuming(1, AFTER, None), done(1), true),
        (stop(1), Err(Code::SequenceReused), true),
    ] {
        let mut world = stopped(None);
        assert_eq!(world.answer_to(request.clone()), answer, "{request:?}");
        let due = resumes.then_some(AFTER);
        assert_eq!(world.due(Timer::Resume), due, "a retry does not prolong it: {request:?}");
        assert_eq!(world.lifecycle.resume().is_some(), resumes, "{request:?}");
    }
}

#[test]
fn a_later_stop_begins_its_own_time() {
    let mut world = stopped(None);
    assert_eq!(world.answer_to(stop_resuming(2, 2 * AFTER, Some(OTHER))), done(2));
    assert_eq!(world.due(Timer::Resume), Some(world.now + 2 * AFTER));
}

#[test] // proves STOP-24
fn an_engine_that_another_caller_keeps_stopped_is_not_resumed_by_a_stop_that_comes_late() {
    let late = |sequence| stop_resuming(sequence, AFTER, None);
    for is_over in [false, true] {
        let mut world = World::running(Policy::default());
        assert_eq!(world.answer_as("a person", stop(1)), under_way(1));
        if is_over {
            world.obeys();
        }
        let answer = if is_over { done(2) } else { under_way(2) };
        assert_eq!(world.answer_as("a controller", late(2)), answer);
        if !is_over {
            world.obeys();
        }
        assert_eq!((world.phase(), world.lifecycle.resume()), (Phase::Stopped, None));
        assert_eq!(world.due(Timer::Resume), None);
        // Who keeps it stopped may also end that.
        assert_eq!(world.answer_as("a person", late(3)), done(3));
        assert!(world.lifecycle.resume().is_some());
    }
}

#[test] // proves STOP-24
fn who_cancels_the_start_keeps_it_stopped() {
    let mut world = World::running(Policy::default());
    let late = |sequence| stop_resuming(sequence, AFTER, None);
    assert_eq!(world.answer_as("a controller", late(1)), under_way(1));
    world.obeys();
    assert_eq!(world.answer_as("a person", stop(2)), done(2));
    assert_eq!(world.answer_as("a controller", late(3)), done(3));
    assert_eq!(world.lifecycle.resume(), None);
    // After a start it is a stop like any other.
    assert_eq!(world.answer_as("a controller", start(4)), under_way(4));
    world.works();
    world.answer_as("a controller", late(5)).unwrap();
    assert!(world.lifecycle.resume().is_some());
}

#[test]
fn if_it_is_due_during_the_stop_it_is_started_right_after() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop_resuming(1, 1_000, None)), under_way(1));
    world.now += 10_000;
    assert_eq!(world.due(Timer::Resume), None);
    world.obeys();
    assert_eq!(world.phase(), Phase::Stopped);
    assert!(world.due(Timer::Resume).unwrap() < world.now);
    world.waits_for(Timer::Resume);
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
}

#[test] // proves RESTART-43
fn a_manager_that_was_frozen_first_waits_for_a_request_once_more() {
    let frozen = || {
        let mut world = stopped(None);
        world.now = AFTER + 10_001;
        world.happens(Event::Timer(Timer::Resume));
        world.works();
        assert_eq!(world.due(Timer::Resume), Some(world.now + 60_000));
        world
    };
    let mut world = frozen();
    assert_eq!(world.answer_to(start_with(2, MOUNTED)), under_way(2));
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1));

    let mut world = frozen();
    world.comes_back();
    world.works();
    world.waits_for(Timer::Resume);
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1), "it waits only once");
}

#[test] // proves JOURNAL-5
fn the_instant_on_disk_counts_after_a_restart_of_the_container() {
    for (at_boot, due) in [
        (100_000, AFTER),
        (9 * AFTER, AFTER),
        // The clock was set back.
        (0, AFTER),
    ] {
        let mut world = stopped(None);
        world.now = at_boot;
        world.comes_back();
        world.works();
        assert_eq!((world.phase(), world.due(Timer::Resume)), (Phase::Stopped, Some(due)));
    }
    let mut world = World::running(Policy::default());
    world.now = 1_000_000;
    world.answer_to(stop_resuming(1, AFTER, None)).unwrap();
    world.now = 200_000;
    world.comes_back();
    world.works();
    assert_eq!(world.due(Timer::Resume), Some(200_000 + AFTER), "never longer than asked for");
    assert_eq!(world.disk.as_ref().unwrap().intent.resume.as_ref().unwrap().at, 200_000 + AFTER);
}

#[test]
fn with_a_checksum_the_mounted_config_is_tried_and_then_the_last_good_one() {
    let mut world = stopped(Some(OTHER));
    world.waits_for(Timer::Resume);
    assert_eq!(world.preparing, Some((ConfigChoice::Mounted, Some(OTHER.to_owned()))));
    world.prepared(world.verify());
    assert_eq!(world.preparing, Some((ConfigChoice::LastGood, Some(OTHER.to_owned()))));
    let kept = Prepared { checksum: Some(OTHER.to_owned()), choice: ConfigChoice::LastGood };
    world.prepared(Ok(kept));
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
    assert_eq!(world.lifecycle.intent().config, ConfigChoice::LastGood);
}

#[test]
fn if_neither_has_the_checksum_it_waits_for_another_config() {
    let mut world = stopped(Some(OTHER));
    world.waits_for(Timer::Resume);
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Stopped, 0));
    let reason = world.lifecycle.reason().unwrap();
    assert_eq!(reason.code, "resume_refused");
    assert!(reason.message.contains("mount the expected config"), "{reason:?}");
    assert_eq!(world.due(Timer::Resume), Some(world.now + Limits::RESUME_RETRY_INTERVAL));
    assert!(world.lifecycle.awaits_config());
    world.happens(Event::ConfigChanged);
    assert_eq!(world.due(Timer::Resume), Some(0), "at once");
    world.happens(Event::Timer(Timer::Resume));
    world
        .prepared(Ok(Prepared { checksum: Some(OTHER.to_owned()), choice: ConfigChoice::Mounted }));
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
    assert!(!world.lifecycle.awaits_config());
}

#[test] // proves STOP-23
fn a_start_that_fails_is_held_and_not_repeated() {
    for policy in [OnExit::Exit, OnExit::Restart, OnExit::Hold] {
        let mut world = World::running(on_exit(policy));
        world.answer_to(stop_resuming(1, AFTER, Some(MOUNTED))).unwrap();
        world.obeys();
        world.waits_for(Timer::Resume);
        world.prepared(world.verify());
        let mut failing = world.clone();
        world.works();
        world.dies(78);
        assert_eq!(world.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::StartFailed);
        assert_eq!(world.lifecycle.timers().count(), 0);
        failing.spawn_fails();
        failing.works();
        assert_eq!(failing.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::SpawnFailed);
        assert_eq!(failing.exit, None);
    }
}

#[test] // proves JOURNAL-13
fn a_start_for_which_no_process_can_be_made_is_tried_again() {
    let mut world = stopped(Some(MOUNTED));
    for _ in 0..10 {
        world.waits_for(Timer::Resume);
        world.prepared(world.verify());
        world.spawn_lacks();
        world.works();
        assert_eq!((world.phase(), world.lifecycle.desired()), (Phase::Stopped, Desired::Stopped));
        assert_eq!(world.disk.as_ref().unwrap().intent.held, None);
        assert_eq!(world.due(Timer::Resume), Some(world.now + Limits::RESUME_RETRY_INTERVAL));
        let reason = world.lifecycle.reason().unwrap();
        assert!(reason.message.contains("no process can be made"), "{reason:?}");
    }
    let mut back = world.clone();
    back.comes_back();
    // It was away, so it waits for a request first.
    back.waits_for(Timer::Resume);
    for world in [&mut world, &mut back] {
        world.waits_for(Timer::Resume);
        world.works();
        assert_eq!(world.phase(), Phase::Starting);
    }
    let mut ending = stopped(None);
    ending.waits_for(Timer::Resume);
    ending.prepared(ending.verify());
    ending.happens(Event::Terminate);
    ending.spawn_lacks();
    ending.works();
    assert_eq!(ending.exit, Some(0), "it was stopped by request");
}

#[test]
fn a_config_that_changes_before_the_spawn_is_judged_again() {
    let mut world = stopped(Some(MOUNTED));
    world.waits_for(Timer::Resume);
    world.prepared(world.verify());
    world.config_outdated();
    assert_eq!(
        (world.lifecycle.desired(), world.due(Timer::Resume)),
        (Desired::Stopped, Some(AFTER))
    );
    world.waits_for(Timer::Resume);
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn term_leaves_it_to_the_next_manager() {
    let mut world = stopped(None);
    world.happens(Event::Terminate);
    assert_eq!((world.exit, world.due(Timer::Resume)), (Some(0), None));
    world.comes_back();
    assert_eq!(world.due(Timer::Resume), Some(AFTER));
}
