//! Another version of the manager takes over, only at rest.

use super::scenario::{on_exit, start, stop, stop_resuming};
use super::world::{Life, World};
use crate::lifecycle::{Checked, Effect, Event, ExitStatus, OnExit, Phase, Policy, Timer};
use stayput_api::{Accepted, Code};

/// A manager whose engine is ready, and all is written.
fn running() -> World {
    let policy = Policy { probe: true, ..on_exit(OnExit::Hold) };
    let mut world = World::running(policy);
    world.works();
    world
}

fn refusal(world: &World) -> Code {
    world.replies.last().and_then(|reply| reply.as_ref().err()).expect("a refusal").code
}

#[test]
fn a_running_engine_is_taken_over_and_its_end_is_seen() {
    let mut world = running();
    let (run, starts) = (world.lifecycle.run(), world.lifecycle.starts());
    let since = world.lifecycle.since();
    world.asks_for_upgrade();
    assert!(world.replies.is_empty(), "there is no answer before the program is known to work");
    world.program_checked(Ok(Checked::CanTakeOver));
    assert_eq!(world.replies, [Ok(Accepted { sequence: 0, done: false })]);
    world.server_closed();
    assert!(world.executing);
    world.takes_over();
    assert_eq!((world.lifecycle.run(), world.lifecycle.starts()), (run, starts));
    assert_eq!(world.lifecycle.since(), since);
    assert_eq!(world.phase(), Phase::Running);
    world.works();
    world.asks(stop(1));
    world.works();
    world.obeys();
    assert_eq!(world.phase(), Phase::Stopped);
}

#[test]
fn a_stop_with_a_resume_goes_on() {
    let mut world = running();
    world.asks(stop_resuming(1, 600_000, None));
    world.works();
    world.obeys();
    let due = world.due(Timer::Resume);
    assert!(due.is_some());
    world.asks_for_upgrade();
    world.program_checked(Ok(Checked::CanTakeOver));
    world.server_closed();
    world.takes_over();
    assert_eq!((world.phase(), world.due(Timer::Resume)), (Phase::Stopped, due));
}

#[test] // proves HOST-5
fn it_is_refused_while_anything_is_under_way() {
    let mut world = running();
    world.drains_ahead(1).expect("it is running");
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::NotAtRest, "its stop is prepared");
    world.asks(stop(1));
    world.works();
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::NotAtRest, "it is being stopped");
    world.leader_ends(ExitStatus::Code(143), false, false, false);
    world.scanned();
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::NotAtRest, "the journal is being written");
    world.works();
    world.asks(start(2));
    world.works();
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::NotAtRest, "it is being started");
    world.happens(Event::Terminate);
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::Terminating);
    assert!(!world.effects.contains(&Effect::CheckProgram), "no program was asked");
}

#[test] // proves HOST-6
fn a_config_that_is_being_kept_is_waited_for() {
    let policy =
        Policy { probe: true, keep_last_good: true, staged: true, ..on_exit(OnExit::Hold) };
    let kept = |world: &mut World| world.happens(Event::Kept);
    let time_is_over = |world: &mut World| world.waits_for(Timer::Keep);
    for goes_on in [&kept as &dyn Fn(&mut World), &time_is_over] {
        let mut world = World::running(policy.clone());
        world.works();
        world.waits_for(Timer::Prove);
        world.asks_for_upgrade();
        assert_eq!(refusal(&world), Code::NotAtRest);
        assert!(!world.checking);
        goes_on(&mut world);
        world.asks_for_upgrade();
        assert!(world.checking);
    }
    let mut world = World::running(policy);
    world.works();
    world.waits_for(Timer::Prove);
    world.asks(stop(1));
    world.works();
    world.obeys();
    world.asks_for_upgrade();
    assert_eq!(refusal(&world), Code::NotAtRest, "the thread would end all the same");
    world.happens(Event::Kept);
    world.asks_for_upgrade();
    assert!(world.checking);
}

#[test] // proves HOST-5
fn what_happens_meanwhile_ends_it() {
    let mut world = running();
    world.asks_for_upgrade();
    world.leader_ends(ExitStatus::Code(1), false, false, false);
    world.program_checked(Ok(Checked::CanTakeOver));
    assert_eq!(refusal(&world), Code::NotAtRest);

    let mut world = running();
    world.asks_for_upgrade();
    world.program_checked(Ok(Checked::CanTakeOver));
    world.leader_ends(ExitStatus::Code(1), false, false, false);
    world.server_closed();
    assert!(!world.executing && !world.lifecycle.is_deciding());
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::OpenServer(_))));

    let mut world = running();
    world.asks_for_upgrade();
    world.happens(Event::Terminate);
    assert_eq!(refusal(&world), Code::Terminating);
    assert!(!world.checking && world.engine.leader == Life::Signalled);
}

#[test]
fn a_program_that_hangs_or_cannot_take_over_changes_nothing() {
    let mut world = running();
    world.asks_for_upgrade();
    world.waits_for(Timer::Upgrade);
    assert_eq!(refusal(&world), Code::UpgradeRefused);
    assert!(!world.checking, "it is not waited for any more");
    world.asks_for_upgrade();
    world.program_checked(Err("other schema".to_owned()));
    assert_eq!(refusal(&world), Code::UpgradeRefused);
    world.asks_for_upgrade();
    world.program_checked(Ok(Checked::CanTakeOver));
    world.server_closed();
    world.not_executed();
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::OpenServer(_))));
    world.asks_for_upgrade();
    world.program_checked(Ok(Checked::Same));
    assert_eq!(world.replies.last(), Some(&Ok(Accepted { sequence: 0, done: true })));
    assert_eq!((world.phase(), world.engine.leader), (Phase::Running, Life::Alive));
}
