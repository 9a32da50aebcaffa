//! The steps of a stop, one by one.

use super::scenario::{done, on_exit, start, stop, stop_within, under_way};
use super::world::World;
use crate::lifecycle::{Effect, Event, ExitStatus, Limits, OnExit, Phase, Policy, Timer, Tree};
use stayput_api::{Code, ExitReason};

const TERM: i32 = 15;

#[test]
fn a_stop_signals_the_leader_alone_after_a_look_at_the_tree() {
    let mut world = World::running(Policy::default());
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    assert_eq!(
        world.effects[1..3],
        [Effect::ScanTree, Effect::SignalLeader(TERM)],
        "descent cannot be found later"
    );
    assert_eq!(world.phase(), Phase::Signalled);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 120_000));
}

#[test]
fn stopped_means_leader_reaped_and_tree_empty() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop(1)).unwrap();
    world.leader_ends(ExitStatus::Code(143), false, true, false);
    world.works();
    assert_eq!(world.phase(), Phase::Lingering);
    assert!(!world.did(&Effect::SignalServer(TERM)), "its launcher passes the signal on");
    assert_eq!(world.answer_to(stop(1)), under_way(1));
    world.server_ends();
    world.works();
    assert_eq!(world.phase(), Phase::Stopped);
    assert_eq!(world.answer_to(stop(1)), done(1));
    let exit = world.lifecycle.last_exit().unwrap();
    assert_eq!((exit.code, exit.reason), (Some(143), ExitReason::Stopped));
}

#[test]
fn stragglers_are_asked_then_killed_and_reported_and_the_stop_stays_clean() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop(1)).unwrap();
    world.leader_ends(ExitStatus::Code(143), false, false, true);
    world.works();
    assert_eq!(world.phase(), Phase::Straggling);
    assert!(world.did(&Effect::TermStragglers));
    world.waits_for(Timer::TreeGrace);
    assert!(world.did(&Effect::KillTree));
    world.straggler_ends();
    world.works();
    let exit = world.lifecycle.last_exit().unwrap();
    assert_eq!((exit.reason, exit.stragglers.len()), (ExitReason::Stopped, 1));
}

#[test]
fn a_jvm_prints_its_threads_before_it_is_killed() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    assert_eq!(world.phase(), Phase::Dumping);
    assert!(world.did(&Effect::DumpThreads) && !world.did(&Effect::KillTree));
    world.waits_for(Timer::Dump);
    assert_eq!(world.phase(), Phase::Killing);
    assert!(world.did(&Effect::KillTree));
    world.leader_ends(ExitStatus::Signal(9), false, false, false);
    world.works();
    assert_eq!(world.phase(), Phase::Stopped);
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::Killed);
}

#[test]
fn without_a_thread_dump_kill_follows_grace() {
    let mut world = World::running(Policy { thread_dump: false, ..Policy::default() });
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    assert_eq!(world.phase(), Phase::Killing);
}

#[test]
fn what_was_forked_during_the_kill_is_killed_too_also_when_it_seemed_stuck() {
    let mut world = World::running(Policy { thread_dump: false, ..Policy::default() });
    world.answer_to(stop(1)).unwrap();
    world.waits_for(Timer::Grace);
    world.waits_for(Timer::Kill);
    assert_eq!(world.phase(), Phase::Stuck);
    assert_eq!(world.answer_to(start(2)), Err(Code::Stuck));
    world.works();
    world.forget();
    world.leader_ends(ExitStatus::Signal(9), false, false, true);
    world.works();
    assert!(world.did(&Effect::KillTree));
    world.straggler_ends();
    world.works();
    assert_eq!(world.phase(), Phase::Stopped);
}

#[test]
fn a_drain_comes_before_the_signal() {
    let mut world = World::running(Policy { drain: 7, ..Policy::default() });
    world.answer_to(stop(1)).unwrap();
    assert_eq!(world.phase(), Phase::Draining);
    assert!(!world.did(&Effect::SignalLeader(TERM)));
    assert_eq!(world.due(Timer::Drain), Some(world.now + 7));
    world.waits_for(Timer::Drain);
    assert!(world.did(&Effect::SignalLeader(TERM)));
    assert_eq!(world.due(Timer::Grace), Some(world.now + 120_000));
}

#[test]
fn a_request_brings_its_own_drain_and_grace() {
    let mut world = World::running(Policy { drain: 7, ..Policy::default() });
    world.answer_to(stop_within(1, Some(30), Some(20))).unwrap();
    assert_eq!(world.due(Timer::Drain), Some(world.now + 20));
    world.waits_for(Timer::Drain);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 30));

    let mut world = World::running(Policy { drain: 7, ..Policy::default() });
    world.answer_to(stop_within(1, None, Some(0))).unwrap();
    assert_eq!(world.phase(), Phase::Signalled);
}

#[test]
fn another_stop_shortens_and_never_lengthens() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop_within(1, Some(50), Some(20))).unwrap();
    world.answer_to(stop_within(2, Some(90), Some(60))).unwrap();
    assert_eq!(world.due(Timer::Drain), Some(world.now + 20));
    world.answer_to(stop_within(3, Some(40), Some(10))).unwrap();
    assert_eq!(world.due(Timer::Drain), Some(world.now + 10));
    world.waits_for(Timer::Drain);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 40));
    world.answer_to(stop_within(4, Some(90), None)).unwrap();
    assert_eq!(world.due(Timer::Grace), Some(world.now + 40));
    world.answer_to(stop_within(5, Some(5), None)).unwrap();
    assert_eq!(world.due(Timer::Grace), Some(world.now + 5));
}

#[test] // proves STOP-18
fn the_same_stop_again_shortens_the_drain_and_writes_nothing() {
    let mut world = World::running(Policy::default());
    world.answer_to(stop_within(1, Some(50), Some(20))).unwrap();
    world.forget();
    assert_eq!(world.answer_to(stop_within(1, Some(50), Some(30))), under_way(1));
    assert_eq!(world.due(Timer::Drain), Some(world.now + 20));
    assert_eq!(world.answer_to(stop_within(1, Some(50), Some(10))), under_way(1));
    assert_eq!(world.due(Timer::Drain), Some(world.now + 10));
    assert!(world.writing.is_empty() && world.phase() == Phase::Draining);
    world.waits_for(Timer::Drain);
    assert_eq!(world.due(Timer::Grace), Some(world.now + 50));
    // Too late: nothing is left to shorten.
    assert_eq!(world.answer_to(stop_within(1, Some(50), Some(0))), under_way(1));
    assert_eq!(world.due(Timer::Grace), Some(world.now + 50));
}

#[test]
fn a_server_that_lost_its_launcher_is_asked_to_end() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.leader_ends(ExitStatus::Signal(9), false, true, false);
    world.works();
    assert!(world.did(&Effect::SignalServer(TERM)));
    assert_eq!(world.due(Timer::Grace), Some(world.now + 120_000));
}

#[test]
fn a_server_that_lost_its_launcher_is_asked_also_when_a_stop_or_term_came_before_the_look() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.leader_ends(ExitStatus::Signal(9), false, true, false);
    world.asks(stop_within(1, Some(30), None));
    world.write_ends(true);
    world.works();
    assert!(world.did(&Effect::SignalServer(TERM)));
    assert_eq!(world.due(Timer::Grace), Some(world.now + 30));

    let bounded = Policy { termination_grace: Some(25), ..Policy::default() };
    let mut world = World::running(bounded);
    world.leader_ends(ExitStatus::Signal(9), false, true, false);
    world.happens(Event::Terminate);
    world.works();
    assert!(world.did(&Effect::SignalServer(TERM)));
    assert_eq!(world.due(Timer::Grace), Some(world.now + 25));
}

#[test]
fn an_engine_that_ends_while_it_drains_is_stopped() {
    let mut world = World::running(Policy { drain: 7, ..Policy::default() });
    world.answer_to(stop(1)).unwrap();
    world.dies(0);
    assert_eq!((world.phase(), world.exit), (Phase::Stopped, None));
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::Exited);
}

#[test]
fn kill_has_ten_seconds() {
    let mut world = World::running(Policy { thread_dump: false, ..Policy::default() });
    world.answer_to(stop_within(1, Some(0), None)).unwrap();
    world.waits_for(Timer::Grace);
    assert_eq!(world.due(Timer::Kill), Some(world.now + Limits::KILL_TIMEOUT));
}

#[test]
fn a_launcher_that_passes_on_its_servers_kill_was_killed() {
    let mut world = World::running(on_exit(OnExit::Hold));
    world.dies(137);
    assert_eq!(world.lifecycle.last_exit().unwrap().reason, ExitReason::Killed);
}

#[test]
fn what_cannot_be_seen_is_not_gone() {
    let mut world = World::running(Policy { thread_dump: false, ..on_exit(OnExit::Hold) });
    world.answer_to(stop(1)).unwrap();
    let unseen = || Event::Tree(Tree { unseen: Some("mount /proc".to_owned()), ..Tree::default() });
    let leader = Event::EngineExited { status: ExitStatus::Signal(15), oom: false };
    world.happens(leader);
    world.happens(unseen());
    assert_eq!(world.phase(), Phase::Straggling);
    world.waits_for(Timer::TreeGrace);
    world.happens(unseen());
    world.waits_for(Timer::Kill);
    world.happens(unseen());
    assert_eq!(world.phase(), Phase::Stuck);
    let message = world.lifecycle.reason().unwrap().message;
    assert!(message.contains("mount /proc"), "{message}");
    world.happens(Event::Tree(Tree::default()));
    assert_eq!(world.phase(), Phase::Stopped);
}
