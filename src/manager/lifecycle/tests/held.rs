//! A failed start waits for a request, whatever happens in the meantime.

use super::scenario::{done, on_exit, start, start_last_good, stop, under_way};
use super::world::World;
use crate::lifecycle::{
    Event, ExitStatus, HeldCode, OnExit, Phase, Policy, Recovered, Request, Timer,
};
use stayput_api::{Code, Desired, Refusal};

#[test]
fn an_end_before_the_first_ready_after_a_requested_start_is_held_under_every_policy() {
    for policy in [OnExit::Exit, OnExit::Restart, OnExit::Hold] {
        let mut world = World::started_by_request(on_exit(policy));
        world.dies(78);
        assert_eq!((world.phase(), world.exit), (Phase::Failed, None), "{policy:?}");
        let held = world.lifecycle.intent().held.as_ref().unwrap();
        assert_eq!(held.code, HeldCode::StartFailed);
        assert!(held.message.contains("code 78"), "{held:?}");
        assert_eq!(world.answer_to(start(2)), Err(Code::StartFailed));
    }
}

/// Nobody else starts it then. Otherwise to say so would contradict what follows.
#[test]
fn only_a_held_engine_is_to_be_started_by_somebody() {
    const ADVICE: &str = "; start it again when the cause is repaired";
    for (policy, advice) in [(OnExit::Exit, ""), (OnExit::Restart, ""), (OnExit::Hold, ADVICE)] {
        let mut world = World::running(on_exit(policy));
        world.dies(1);
        let message = world.lifecycle.reason().unwrap().message;
        let (said, _) = message.split_once("; the engine is started").unwrap_or((&message, ""));
        assert!(said.starts_with("the engine ended with code 1 after "), "{policy:?}: {message}");
        assert_eq!(said.find(';').map_or("", |at| &said[at..]), advice, "{policy:?}");
    }
}

#[test]
fn an_end_after_ready_is_not() {
    let mut world = World::started_by_request(on_exit(OnExit::Restart));
    world.happens(Event::Ready);
    world.dies(1);
    assert_eq!(world.phase(), Phase::Backoff);
}

#[test]
fn held_stays_held_when_the_container_comes_back() {
    let mut world = World::started_by_request(Policy::default());
    world.dies(78);
    world.forget();
    world.comes_back();
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Failed, 0));
    assert_eq!(world.lifecycle.reason().unwrap().code, "start_failed");
    assert_eq!(world.answer_to(start_last_good(3)), under_way(3));
}

#[test]
fn a_stop_lifts_the_hold_for_good() {
    let mut world = World::started_by_request(Policy::default());
    world.dies(78);
    assert_eq!(world.answer_to(stop(3)), done(3));
    world.comes_back();
    assert_eq!((world.phase(), world.lifecycle.intent().held.clone()), (Phase::Stopped, None));
}

#[test]
fn a_hold_beside_a_request_that_changes_nothing_is_neither_lost_nor_late() {
    let mut world = World::started_by_request(Policy::default());
    world.asks(start(3));
    world.leader_ends(ExitStatus::Code(78), false, false, false);
    world.scanned();
    assert!(world.due(Timer::Journal).is_some(), "a hung disk must not prevent the answer");
    world.works();
    assert_eq!(world.answer().unwrap_err().code, Code::StartFailed);
    let saved = &world.disk.as_ref().unwrap().intent;
    assert!(saved.held.is_some());
    assert_eq!(saved.fencing.sequence, 3);
}

#[test]
fn a_hold_beside_a_stop_that_cannot_be_written_holds() {
    let mut world = World::started_by_request(on_exit(OnExit::Exit));
    world.asks(stop(3));
    world.leader_ends(ExitStatus::Code(78), false, false, false);
    world.scanned();
    world.works_without_disk();
    assert_eq!(world.answer().unwrap_err().code, Code::JournalUnavailable);
    assert_eq!((world.phase(), world.exit), (Phase::Failed, None));
    assert!(world.lifecycle.intent().held.is_some());
}

#[test]
fn an_unreadable_journal_is_held_and_not_written_over() {
    let mut world = World::new(Policy::default());
    world.happens(Event::Boot(Recovered::Unreadable("schema 9 is newer".to_owned())));
    assert_eq!((world.phase(), world.effects.len()), (Phase::Failed, 0));
    let reason = world.lifecycle.reason().unwrap();
    assert_eq!(
        (reason.code.as_str(), reason.message.as_str()),
        ("journal_unreadable", "schema 9 is newer")
    );
    world.happens(Event::Terminate);
    assert_eq!(world.exit, Some(0));
    assert_eq!(world.writing.len(), 0);
}

/// A manager whose disk does not answer in time. On the disk is what request 5 has left.
pub(super) fn without_an_answer(request: Request) -> World {
    let mut before = World::running(Policy::default());
    before.answer_to(request).unwrap();
    before.works();
    let mut world = World::new(Policy::default());
    world.disk = before.disk.take();
    world.now = 6_000;
    world.boots_without_an_answer();
    assert_eq!((world.phase(), world.effects.len()), (Phase::Failed, 0));
    world
}

#[test] // proves JOURNAL-15
fn a_journal_that_is_read_late_is_followed_and_its_sequences_count() {
    let mut world = without_an_answer(start(5));
    for request in [start(3), start(6), stop(6), stop(0)] {
        assert_eq!(world.answer_to(request), Err(Code::JournalUnavailable));
    }
    assert_eq!(world.drains_ahead(6).unwrap_err().code, Code::JournalUnavailable);
    assert_eq!(world.lifecycle.intent().held.as_ref().unwrap().code, HeldCode::JournalUnreadable);
    assert_eq!(world.writing.len(), 0);
    world.journal_is_read();
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1), "without a request");
    assert_eq!(world.answer_to(stop(4)), Err(Code::StaleSequence));
    assert_eq!(world.answer_to(stop(6)), under_way(6));

    let mut world = without_an_answer(stop(5));
    world.journal_is_read();
    world.works();
    assert_eq!((world.phase(), world.spawns()), (Phase::Stopped, 0));
    assert_eq!(world.answer_to(stop(5)), done(5));
}

#[test] // proves REQUEST-2, JOURNAL-15
fn a_start_without_a_sequence_does_not_wait_for_the_journal() {
    let mut world = without_an_answer(stop(5));
    let saved = world.disk.clone().unwrap();
    world.asks(start(0));
    world.prepared(world.verify());
    world.waits_for(Timer::Journal);
    world.spawned();
    world.answer().unwrap();
    assert_eq!(world.phase(), Phase::Starting);
    // What was read before that start does not stop the engine.
    world.disk = Some(saved);
    world.journal_is_read();
    world.works();
    assert_eq!((world.phase(), world.lifecycle.desired()), (Phase::Starting, Desired::Running));
    assert_eq!(world.disk.as_ref().unwrap().intent.desired, Desired::Running);
    // Its sequences count: a stop that was carried out before does not act again.
    assert_eq!(world.disk.as_ref().unwrap().intent.fencing.sequence, 6);
    for request in [stop(1), stop(5), stop(6)] {
        assert!(world.answer_to(request).is_err());
    }
    assert_eq!(world.phase(), Phase::Starting);
    assert_eq!(world.answer_to(stop(7)), under_way(7));
}

/// How a start is refused while its config is verified.
const REFUSALS: [fn(&mut World); 3] = [
    |world| world.prepared(Err(Refusal::new(Code::WrongConfig, "another one"))),
    |world| {
        world.preparing = None;
        world.waits_for(Timer::Prepare);
    },
    |world| {
        // It was accepted, and could not be written down.
        world.prepared(world.verify());
        world.waits_for(Timer::Journal);
        world.config_outdated();
        world.prepared(Err(Refusal::new(Code::WrongConfig, "another one")));
        assert_eq!(world.due(Timer::Rewrite), None, "what is not known is not written");
    },
];

#[test] // proves JOURNAL-15
fn a_start_that_is_refused_before_the_journal_is_read_does_not_replace_it() {
    for refuse in REFUSALS {
        for is_read_first in [false, true] {
            let mut world = without_an_answer(start(5));
            world.asks(start(0));
            if is_read_first {
                world.journal_is_read();
                assert_eq!(world.preparing.iter().len(), 1, "the request is decided first");
            }
            refuse(&mut world);
            assert!(world.answer().is_err());
            if !is_read_first {
                let held = world.lifecycle.intent().held.as_ref().unwrap();
                assert_eq!(held.code, HeldCode::JournalUnreadable);
                assert_eq!(world.lifecycle.intent().fencing.sequence, 0);
                world.journal_is_read();
            }
            world.works();
            assert_eq!(world.phase(), Phase::Starting, "without a request");
            assert_eq!(world.disk.as_ref().unwrap().intent.held, None);
            assert_eq!(world.answer_to(stop(4)), Err(Code::StaleSequence));

            let mut world = without_an_answer(stop(5));
            world.asks(start(0));
            refuse(&mut world);
            world.journal_is_read();
            world.works();
            assert_eq!(world.phase(), Phase::Stopped);
            assert_eq!(world.answer_to(stop(5)), done(5));
        }
    }
}

#[test] // proves JOURNAL-15
fn a_start_that_term_refuses_before_the_journal_is_read_does_not_replace_it() {
    for is_accepted in [false, true] {
        for is_read_first in [false, true] {
            let mut world = without_an_answer(start(5));
            world.asks(start(0));
            if is_accepted {
                world.prepared(world.verify());
            }
            if is_read_first {
                world.journal_is_read();
            }
            world.happens(Event::Terminate);
            assert_eq!(world.answer().unwrap_err().code, Code::Terminating);
            assert_eq!(world.exit, (!is_accepted).then_some(0));
            if !is_read_first {
                world.journal_is_read();
            }
            world.preparing = None;
            world.works();
            assert_eq!((world.spawns(), world.exit), (0, Some(0)));
            let saved = &world.disk.as_ref().unwrap().intent;
            assert_eq!((saved.held.as_ref(), saved.fencing.sequence), (None, 5));
            world.comes_back();
            world.works();
            assert_eq!((world.phase(), world.spawns()), (Phase::Starting, 1));
        }
    }
}

#[test]
fn a_start_that_is_accepted_after_the_journal_was_read_goes_on_with_its_sequences() {
    let mut world = without_an_answer(stop(5));
    world.asks(start(0));
    world.journal_is_read();
    world.works();
    assert_eq!(world.answer().map_err(|refusal| refusal.code), under_way(6));
    assert_eq!(world.phase(), Phase::Starting);
    assert_eq!(world.answer_to(stop(4)), Err(Code::StaleSequence));
}

#[test]
fn a_journal_that_cannot_be_used_is_held_again_after_a_start_that_was_not_made() {
    let mut world = without_an_answer(start(5));
    world.asks(start(0));
    REFUSALS[2](&mut world);
    world.happens(Event::JournalRead(Recovered::Unreadable("torn".to_owned())));
    world.works();
    let held = world.disk.as_ref().unwrap().intent.held.as_ref().unwrap();
    assert_eq!((held.code, held.message.as_str()), (HeldCode::JournalUnreadable, "torn"));
    assert_eq!(world.answer_to(start(7)), under_way(7));
}

#[test]
fn a_journal_that_is_read_late_may_be_missing_or_unreadable_or_too_late() {
    let mut world = without_an_answer(stop(5));
    world.disk = None;
    world.journal_is_read();
    world.works();
    assert_eq!(world.phase(), Phase::Starting);

    let mut world = without_an_answer(stop(5));
    world.happens(Event::JournalRead(Recovered::Unreadable("torn".to_owned())));
    assert_eq!((world.phase(), world.effects.len()), (Phase::Failed, 0));
    assert_eq!(world.lifecycle.reason().unwrap().message, "torn");
    assert_eq!(world.answer_to(start(7)), under_way(7));

    let mut world = without_an_answer(start(5));
    world.happens(Event::Terminate);
    assert_eq!(world.exit, Some(0));
    world.journal_is_read();
    assert_eq!((world.spawns(), world.writing.len()), (0, 0));
}

#[test]
fn an_unreadable_journal_waits_for_a_start_or_a_stop() {
    for (request, desired) in [(start(7), Desired::Running), (stop(7), Desired::Stopped)] {
        let mut world = World::new(Policy::default());
        world.happens(Event::Boot(Recovered::Unreadable("torn".to_owned())));
        world.answer_to(request).unwrap();
        assert_eq!(world.disk.as_ref().unwrap().intent.desired, desired);
        assert!(!world.disk.as_ref().unwrap().intent.fencing.unknown);
    }
}
