//! Which requests are still accepted.

use super::scenario::{done, on_exit, start, start_with, stop, stop_within, under_way};
use super::world::{MOUNTED, OTHER, World};
use crate::lifecycle::{Effect, Event, Fencing, Intent, OnExit, Phase, Policy, Recovered, Request};
use stayput_api::{Code, Desired, MAX_SEQUENCE, MAX_SEQUENCE_JUMP, StopRequest};

#[test] // proves REQUEST-1
fn a_lower_sequence_is_stale() {
    let mut world = World::running(on_exit(OnExit::Hold));
    assert_eq!(world.answer_to(start(7)), done(7));
    assert_eq!(world.answer_to(stop(6)), Err(Code::StaleSequence));
    assert_eq!(world.phase(), Phase::Running);
}

#[test]
fn a_sequence_of_zero_is_stale_before_any_request() {
    let mut world = World::running(Policy::default());
    let zero = Request::Stop(StopRequest { sequence: Some(0), ..StopRequest::default() });
    assert_eq!(world.answer_to(zero), Err(Code::StaleSequence));
}

#[test]
fn the_same_request_again_is_answered_and_does_not_act_again() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(stop(1)), done(1));
    assert_eq!(world.answer_to(start(2)), under_way(2));
    world.forget();
    assert_eq!(world.answer_to(start(2)), under_way(2));
    assert_eq!(world.spawns(), 0);
    world.happens(Event::Ready);
    assert_eq!(world.answer_to(start(2)), done(2));
}

#[test] // proves REQUEST-1
fn the_same_sequence_with_another_body_is_refused() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start(1)), Err(Code::SequenceReused));
    assert_eq!(world.answer_to(stop_within(1, Some(5), None)), Err(Code::SequenceReused));
}

#[test] // proves REQUEST-1
fn a_refused_request_is_judged_afresh() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start_with(2, OTHER)), Err(Code::ChecksumMismatch));
    world.asks(start_with(2, OTHER));
    world.prepared(Ok(crate::lifecycle::Prepared {
        checksum: Some(OTHER.to_owned()),
        choice: stayput_api::ConfigChoice::Mounted,
    }));
    world.works();
    assert_eq!(world.phase(), Phase::Starting);
}

#[test]
fn a_refused_request_is_the_highest_also_on_the_disk() {
    let mut world = World::stopped(Policy::default());
    assert_eq!(world.answer_to(start_with(9, OTHER)), Err(Code::ChecksumMismatch));
    world.comes_back();
    assert_eq!(world.answer_to(start(8)), Err(Code::StaleSequence));
    assert_eq!(world.phase(), Phase::Stopped);
}

#[test]
fn a_request_that_changes_nothing_is_the_highest_also_on_the_disk() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(start_with(9, MOUNTED)), done(9));
    world.comes_back();
    world.works();
    assert_eq!(world.answer_to(stop(8)), Err(Code::StaleSequence));
}

#[test]
fn a_request_without_sequence_takes_the_next_one() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(start(41)), done(41));
    assert_eq!(world.answer_to(stop(0)), under_way(42));
}

#[test] // proves REQUEST-1
fn a_jump_is_refused_and_locks_nobody_out() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(start(MAX_SEQUENCE_JUMP + 1)), Err(Code::SequenceJump));
    assert_eq!(world.answer_to(start(MAX_SEQUENCE_JUMP)), done(MAX_SEQUENCE_JUMP));
}

#[test]
fn after_a_lost_journal_any_sequence_may_come_next() {
    let mut world = World::new(Policy::default());
    world.happens(Event::Boot(Recovered::Unreadable("torn".to_owned())));
    assert_eq!(world.answer_to(stop(40_000_000)), done(40_000_000));
    assert_eq!(world.answer_to(start(39_999_999)), Err(Code::StaleSequence));
}

#[test]
fn no_sequence_lies_above_the_largest_one() {
    let mut world = World::new(Policy::default());
    let fencing = Fencing { sequence: MAX_SEQUENCE, ..Fencing::default() };
    let intent = Intent { desired: Desired::Stopped, fencing, ..Intent::default() };
    let intent = Box::new(intent);
    world.happens(Event::Boot(Recovered::Journal { intent, last_exit: None, run: None }));
    assert_eq!(world.answer_to(stop(MAX_SEQUENCE + 1)), Err(Code::SequenceJump));
    assert_eq!(world.answer_to(start(0)), Err(Code::SequenceJump));
}

#[test]
fn after_a_lost_journal_no_sequence_may_lock_everybody_out() {
    let mut world = World::new(Policy::default());
    world.happens(Event::Boot(Recovered::Unreadable("torn".to_owned())));
    assert_eq!(world.answer_to(stop(MAX_SEQUENCE)), Err(Code::SequenceJump));
    let highest = MAX_SEQUENCE - MAX_SEQUENCE_JUMP;
    assert_eq!(world.answer_to(stop(highest)), done(highest));
    assert_eq!(world.answer_to(stop(0)), done(highest + 1));
}

#[test]
fn the_sequence_of_a_request_for_another_pod_is_not_recorded() {
    let for_pod = |uid: &str| {
        Request::Stop(StopRequest {
            sequence: Some(5),
            pod: Some(uid.to_owned()),
            ..StopRequest::default()
        })
    };
    let mut world = World::running(Policy { pod: Some("own".to_owned()), ..Policy::default() });
    assert_eq!(world.answer_to(for_pod("theirs")), Err(Code::WrongPod));
    assert_eq!(world.lifecycle.intent().fencing.sequence, 0);
    assert_eq!(world.answer_to(for_pod("own")), under_way(5));

    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(for_pod("own")), Err(Code::PodUnknown));
    assert!(!world.did(&Effect::SignalLeader(15)));
}
