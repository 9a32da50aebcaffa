//! The engine ends by itself, or fails to start: exit, restart, hold.

use super::scenario::{done, on_exit, start, start_with, stop, under_way};
use super::world::{OTHER, World};
use crate::lifecycle::{Event, ExitStatus, HeldCode, Limits, OnExit, Phase, Policy, Timer};
use stayput_api::{Code, Desired, ExitReason, Refusal};

#[test]
fn exit_ends_the_manager_with_the_engines_code_once_the_journal_knows() {
    let mut world = World::running(on_exit(OnExit::Exit));
    world.leader_ends(ExitStatus::Code(3), false, false, false);
    world.scanned();
    assert_eq!(world.exit, None);
    assert!(world.lifecycle.is_deciding(), "no request is taken any more");
    world.works();
    assert_eq!(world.exit, Some(3));
    assert_eq!(world.disk.as_ref().unwrap().last_exit.as_ref().unwrap().code, Some(3));
}

#[test]
fn exit_does_not_wait_for_a_hung_disk_for_ever() {
    let mut world = World::running(on_exit(OnExit::Exit));
    world.leader_ends(ExitStatus::Signal(6), false, false, false);
    world.scanned();
    assert_eq!(world.due(Timer::Journal), Some(world.now + Limits::JOURNAL_WRITE_TIMEOUT));
    world.waits_for(Timer::Journal);
    assert_eq!(world.exit, Some(134));
}

#[test]
fn exit_waits_for_the_tree() {
    let mut world = World::running(on_exit(OnExit::Exit));
    world.leader_ends(ExitStatus::Code(1), false, true, false);
    world.works();
    assert_eq!(world.exit, None);
    world.server_ends();
    world.works();
    assert_eq!(world.exit, Some(1));
}

#[test]
fn without_an_api_the_manager_ends_with_the_leader_as_tini_does() {
    let mut world = World::running(Policy { api: false, ..Policy::default() });
    world.leader_ends(ExitStatus::Code(1), false, true, true);
    world.works();
    assert_eq!(world.exit, Some(1));
}

#[test]
fn hold_waits_for_a_person_with_code_and_reason_kept() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.dies(1);
    assert_eq!((world.phase(), world.exit), (Phase::Failed, None));
    let reason = world.lifecycle.reason().unwrap();
    assert_eq!(reason.code, "ended_by_itself");
    assert!(reason.message.contains("code 1"), "{reason:?}");
    assert_eq!(world.answer_to(start(1)), under_way(1));
    assert_eq!(world.lifecycle.intent().held, None);
}

#[test]
fn restart_doubles_its_wait_and_gives_up_after_five() {
    let mut world = World::running(on_exit(OnExit::Restart));
    for doublings in 0..5 {
        world.dies(1);
        assert_eq!(world.phase(), Phase::Backoff);
        let wait = world.due(Timer::Backoff).unwrap() - world.now;
        let base = Limits::MIN_BACKOFF << doublings;
        assert!((base * 9 / 10..=base * 11 / 10).contains(&wait), "{wait} after {doublings}");
        world.waits_for(Timer::Backoff);
        world.works();
        assert_eq!(world.phase(), Phase::Starting);
    }
    world.dies(1);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!(world.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::TooManyRestarts);
}

#[test]
fn ends_that_are_long_past_do_not_count() {
    let mut world = World::running(on_exit(OnExit::Restart));
    for _ in 0..20 {
        world.now += Limits::RESTART_WINDOW / 4;
        world.dies(1);
        world.waits_for(Timer::Backoff);
        world.works();
    }
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn a_stop_cancels_the_backoff() {
    let mut world = World::running(on_exit(OnExit::Restart));
    world.dies(1);
    assert_eq!(world.answer_to(stop(1)), done(1));
    assert_eq!(world.lifecycle.timers().count(), 0);
}

#[test]
fn a_refused_request_does_not_cost_the_restart_that_was_due() {
    let mut world = World::running(on_exit(OnExit::Restart));
    world.dies(1);
    world.asks(start_with(1, OTHER));
    world.waits_for(Timer::Backoff);
    world.works();
    assert_eq!(world.answer().unwrap_err().code, Code::ChecksumMismatch);
    assert_eq!(world.phase(), Phase::Backoff);
    world.waits_for(Timer::Backoff);
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn a_spawn_or_a_config_that_fails_by_itself_is_an_end_as_any_other() {
    for (policy, phase) in [(OnExit::Restart, Phase::Backoff), (OnExit::Hold, Phase::Failed)] {
        let mut world = World::new(on_exit(policy));
        world.boot();
        world.prepared(world.verify());
        world.spawn_fails();
        world.works();
        assert_eq!(world.phase(), phase);
    }
    let mut world = World::new(on_exit(OnExit::Exit));
    world.boot();
    world.prepared(Err(Refusal::new(Code::StageFailed, "no space")));
    world.works();
    assert_eq!(world.exit, Some(78));
}

/// Neither a shortage of processes nor a full disk is a reason to be down until somebody asks.
#[test] // proves JOURNAL-13
fn a_start_that_nobody_asked_for_is_repeated_until_a_shortage_is_over() {
    let full = |world: &mut World| {
        world.prepared(Err(Refusal::new(Code::StageFailed, "no space")));
    };
    let no_temp_dir = |world: &mut World| {
        world.prepared(Err(Refusal::new(Code::TempDirFailed, "no space")));
    };
    let no_process = |world: &mut World| {
        world.prepared(world.verify());
        world.spawn_lacks();
    };
    for fails in [full, no_temp_dir, no_process] {
        for policy in [OnExit::Restart, OnExit::Hold] {
            let mut world = World::new(on_exit(policy));
            world.boot();
            for _ in 0..2 * Limits::MAX_RESTARTS {
                fails(&mut world);
                while !world.writing.is_empty() {
                    world.write_ends(true);
                }
                assert_eq!(world.phase(), Phase::Backoff);
                assert_eq!(world.due(Timer::Backoff), Some(world.now + Limits::MAX_BACKOFF));
                assert_eq!(world.disk.as_ref().unwrap().intent.held, None);
                world.waits_for(Timer::Backoff);
            }
            world.works();
            assert_eq!(world.phase(), Phase::Starting);
        }
    }
}

#[test]
fn with_exit_a_shortage_is_left_to_the_next_container() {
    let mut world = World::new(on_exit(OnExit::Exit));
    world.boot();
    world.prepared(world.verify());
    world.spawn_lacks();
    world.works();
    assert_eq!(world.exit, Some(126));
    world.comes_back();
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn a_requested_start_that_a_shortage_delays_is_still_a_requested_one() {
    let mut world = World::started_by_request(on_exit(OnExit::Restart));
    world.comes_back();
    world.prepared(world.verify());
    world.spawn_lacks();
    world.works();
    assert_eq!(world.answer_to(start(2)), under_way(2), "it goes on");
    world.waits_for(Timer::Backoff);
    world.works();
    world.dies(78);
    assert_eq!(world.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::StartFailed);
}

#[test] // proves JOURNAL-4
fn a_stop_wins_over_an_end_of_the_engines_own_beside_it() {
    for policy in [OnExit::Exit, OnExit::Restart, OnExit::Hold] {
        let mut world = World::running(on_exit(policy));
        world.asks(stop(1));
        world.leader_ends(ExitStatus::Code(1), false, false, false);
        world.scanned();
        world.works();
        assert_eq!(
            world.answer().unwrap(),
            under_way(1).unwrap(),
            "its end is not on the disk yet"
        );
        assert_eq!(world.answer_to(stop(1)), done(1));
        assert_eq!((world.phase(), world.exit), (Phase::Stopped, None), "{policy:?}");
        assert_eq!(world.lifecycle.timers().count(), 0);
        world.comes_back();
        world.works();
        assert_eq!((world.phase(), world.lifecycle.desired()), (Phase::Stopped, Desired::Stopped));
    }
}

#[test]
fn a_stop_that_is_refused_beside_an_end_leaves_the_policy_its_way() {
    for (policy, phase, exit) in [
        (OnExit::Exit, Phase::Failed, Some(1)),
        (OnExit::Restart, Phase::Backoff, None),
        (OnExit::Hold, Phase::Failed, None),
    ] {
        let mut world = World::running(on_exit(policy));
        world.asks(stop(1));
        world.leader_ends(ExitStatus::Code(1), false, false, false);
        world.scanned();
        world.works_without_disk();
        assert_eq!(world.answer().unwrap_err().code, Code::JournalUnavailable);
        assert_eq!((world.phase(), world.exit), (phase, exit), "{policy:?}");
    }
}

#[test]
fn an_oom_kill_is_told_from_a_kill() {
    for (oom, reason) in [(true, ExitReason::Oom), (false, ExitReason::Killed)] {
        let mut world = World::running(on_exit(OnExit::Hold));
        world.leader_ends(ExitStatus::Signal(9), oom, false, false);
        world.works();
        assert_eq!(world.lifecycle.last_exit().unwrap().reason, reason);
    }
    // Another process of the container ran out of memory before a stop that the manager ended with KILL.
    let mut world = World::running(Policy { thread_dump: false, ..on_exit(OnExit::Hold) });
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    world.leader_ends(ExitStatus::Signal(9), true, false, false);
    world.works();
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::Killed);
}

#[test]
fn an_interrupt_reaches_the_engine_or_else_the_manager() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.happens(Event::Forward(2));
    assert!(!world.lifecycle.is_terminating());
    world.dies(130);
    world.happens(Event::Forward(1));
    assert!(!world.lifecycle.is_terminating(), "only INT");
    world.happens(Event::Forward(2));
    assert_eq!(world.exit, Some(130));
}
