//! The intent is durable before the act, and what happens when it cannot be written.

use super::scenario::{done, on_exit, start, start_with, stop, under_way};
use super::world::{OTHER, World};
use crate::lifecycle::{Effect, Event, ExitStatus, OnExit, Phase, Policy, Timer};
use stayput_api::{Code, Desired};

#[test] // proves JOURNAL-3
fn nothing_is_signalled_before_the_stop_is_on_the_disk() {
    let mut world = World::running(Policy::default());
    world.asks(stop(1));
    assert!(!world.did(&Effect::SignalLeader(15)));
    assert!(!world.lifecycle.is_durable());
    world.write_ends(true);
    assert!(world.did(&Effect::SignalLeader(15)));
    assert!(world.lifecycle.is_durable());
}

#[test]
fn nothing_is_spawned_before_the_start_is_on_the_disk() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.prepared(world.verify());
    assert_eq!(world.spawns(), 0);
    world.write_ends(true);
    assert_eq!(world.spawns(), 1);
}

#[test]
fn a_stop_that_cannot_be_written_is_refused_and_nothing_is_stopped() {
    let mut world = World::running(Policy::default());
    world.asks(stop(5));
    world.works_without_disk();
    assert_eq!(world.answer().unwrap_err().code, Code::JournalUnavailable);
    assert_eq!((world.phase(), world.lifecycle.desired()), (Phase::Running, Desired::Running));
    assert_eq!(world.answer_to(stop(4)), Err(Code::StaleSequence), "its sequence was recorded");
    assert_eq!(world.answer_to(stop(5)), under_way(5), "judged afresh");
}

#[test]
fn a_stop_that_a_hung_disk_swallows_is_refused_in_time() {
    let mut world = World::running(Policy::default());
    world.asks(stop(5));
    assert_eq!(world.due(Timer::Journal), Some(world.now + 5_000));
    world.waits_for(Timer::Journal);
    assert_eq!(world.answer().unwrap_err().code, Code::JournalUnavailable);
    // The write succeeds after all; the intent that is in force is written after it.
    world.works();
    assert_eq!(world.disk.as_ref().unwrap().intent.desired, Desired::Running);
    assert!(world.lifecycle.is_durable());
    assert_eq!(world.phase(), Phase::Running);
}

#[test]
fn a_start_is_carried_out_without_a_journal() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.works_without_disk();
    assert_eq!(world.phase(), Phase::Starting);
    assert!(!world.lifecycle.is_durable());
}

#[test]
fn the_journals_time_counts_also_when_a_newer_version_is_on_its_way() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.asks(start(5));
    world.leader_ends(ExitStatus::Code(1), false, false, false);
    world.scanned();
    world.waits_for(Timer::Journal);
    assert_eq!(world.answer().unwrap_err().code, Code::StartFailed);
    world.works();
    assert!(world.disk.as_ref().unwrap().intent.held.is_some());
}

#[test]
fn an_older_version_on_the_disk_is_not_the_awaited_one() {
    let mut world = World::new(Policy::default());
    world.boot();
    world.prepared(world.verify());
    world.spawned();
    world.asks(stop(1));
    assert_eq!(world.writing.len(), 2, "the boot's, and the stop's");
    world.write_ends(true);
    assert!(world.replies.is_empty());
    world.write_ends(true);
    assert_eq!(world.answer().map_err(|refusal| refusal.code), under_way(1));
}

#[test]
fn a_stop_is_done_also_when_the_engines_end_could_not_be_written() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    world.works_without_disk();
    assert_eq!(world.phase(), Phase::Stopped);
    assert!(world.lifecycle.is_durable(), "what was requested is on the disk");
    assert_eq!(world.answer_to(stop(1)), done(1));
}

#[test]
fn a_stop_is_done_when_the_engines_end_is_on_the_disk_too() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    assert_eq!(world.phase(), Phase::Stopped);
    assert!(!world.lifecycle.end_is_recorded());
    world.asks(stop(1));
    assert_eq!(world.answer().unwrap(), under_way(1).unwrap());
    world.write_ends(true);
    assert_eq!(world.disk.as_ref().unwrap().last_exit.as_ref().unwrap().code, Some(143));
    assert_eq!(world.answer_to(stop(1)), done(1));
}

#[test] // proves JOURNAL-12
fn an_engines_end_that_could_not_be_written_is_written_when_the_disk_is_back() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    world.works_without_disk();
    world.asks_for_upgrade();
    assert_eq!(world.answer().unwrap_err().code, Code::NotAtRest, "the journal cannot be written");
    world.waits_for(Timer::Rewrite);
    world.works();
    assert_eq!(world.disk.as_ref().unwrap().last_exit.as_ref().unwrap().code, Some(143));
    assert_eq!(world.due(Timer::Rewrite), None);
}

#[test] // proves JOURNAL-4
fn a_disk_that_hangs_after_the_stop_holds_its_answer_for_a_limited_time() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    assert_eq!(world.due(Timer::Journal), Some(world.now + 5_000));
    world.waits_for(Timer::Journal);
    assert!(world.lifecycle.end_is_recorded());
    assert_eq!(world.due(Timer::Journal), None);
    world.asks(stop(1));
    assert_eq!(world.answer().unwrap(), done(1).unwrap());
}

#[test]
fn an_accepted_stop_outlives_a_crash_before_the_act() {
    let mut world = World::running(Policy::default());
    world.asks(stop(3));
    let (_, saved) = world.writing.remove(0);
    world.disk = Some(saved);
    world.comes_back();
    world.works();
    assert_eq!(world.phase(), Phase::Stopped);
    assert_eq!(world.answer_to(stop(3)), done(3), "a retry");
}

#[test]
fn an_accepted_start_outlives_a_crash_and_its_retry_starts_nothing_more() {
    let mut world = World::started_by_request(Policy::default());
    world.comes_back();
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1));
    assert_eq!(world.answer_to(start(2)), under_way(2));
    assert_eq!(world.spawns(), 1);
}

#[test]
fn a_retried_start_is_not_called_done_on_a_config_that_came_later() {
    let mut world = World::stopped(Policy::default());
    world.asks(start_with(2, OTHER));
    let other = crate::lifecycle::Prepared {
        checksum: Some(OTHER.to_owned()),
        choice: stayput_api::ConfigChoice::Mounted,
    };
    world.prepared(Ok(other));
    world.works();
    // The next container finds another config mounted and starts with it.
    world.comes_back();
    world.works();
    world.happens(Event::Ready);
    assert_eq!(world.answer_to(start_with(2, OTHER)), Err(Code::WrongConfig));
}

#[test] // proves JOURNAL-12
fn what_could_not_be_written_is_written_when_the_disk_is_back() {
    let mut world = World::new(on_exit(OnExit::Hold));
    world.boot();
    world.works_without_disk();
    assert!(!world.lifecycle.is_durable(), "the first version counts as well");
    world.waits_for(Timer::Rewrite);
    world.works_without_disk();
    assert!(!world.lifecycle.is_durable());
    world.waits_for(Timer::Rewrite);
    world.works();
    assert!(world.lifecycle.is_durable());
    assert_eq!(world.due(Timer::Rewrite), None);
}

#[test]
fn a_start_that_was_asked_for_and_never_proved_itself_is_held_by_the_next_container_too() {
    let mut world = World::started_by_request(on_exit(OnExit::Exit));
    world.comes_back();
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
    world.dies(78);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!(world.exit, None, "held, not ended");
}

#[test]
fn a_start_that_proved_itself_is_an_engine_as_any_other_to_the_next_container() {
    let mut world = World::started_by_request(on_exit(OnExit::Exit));
    world.happens(Event::Ready);
    world.works();
    world.comes_back();
    world.works();
    world.dies(78);
    assert_eq!(world.exit, Some(78));
}

#[test]
fn a_config_that_is_never_prepared_does_not_hold_the_next_request() {
    let mut world = World::stopped(Policy::default());
    world.asks(start(2));
    world.waits_for(Timer::Prepare);
    world.preparing = None;
    world.works();
    assert_eq!(world.answer().unwrap_err().code, Code::StageFailed);
    assert_eq!(world.answer_to(stop(3)), done(3));
}

#[test]
fn who_stopped_it_stays_named_when_others_ask_in_vain() {
    let mut world = World::stopped(Policy::default());
    let reason = world.lifecycle.reason();
    assert_eq!(world.answer_to(start_with(2, OTHER)), Err(Code::ChecksumMismatch));
    assert_eq!(world.lifecycle.reason(), reason);
}
