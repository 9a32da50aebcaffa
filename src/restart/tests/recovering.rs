//! A node that is back keeps its slot while shards recover: what it is for, and for how long.

use super::driver::Driver;
use super::scenario::play_line;
use super::world::World;
use crate::{Disabled, MemberStep, Policy, Predicate};

const LONGEST: u64 = 5_000;

fn driver(recovery: u64, policy: Policy) -> Driver {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), policy);
    driver.world.engine.shards.recovery = recovery;
    play_line(&mut driver, "request rolling r1");
    driver
}

fn step(driver: &Driver, node: &str) -> Option<MemberStep> {
    let member = driver.world.ledger().members().find(|member| member.node == node)?;
    Some(member.step)
}

/// How long after it was seen ready the node ended, in milliseconds.
fn kept(driver: &mut Driver, node: &str) -> u64 {
    assert!(driver.run(600_000, |driver| step(driver, node) == Some(MemberStep::Restarting)));
    assert!(driver.run(600_000, |driver| step(driver, node) != Some(MemberStep::Restarting)));
    let now = driver.world.now;
    let manager = driver.world.pod(node).seen.clone().expect("its manager answers");
    now - manager.ready_since.expect("it is ready").0
}

#[test] // proves RESTART-141
fn its_end_is_one_write_with_the_next_slot_if_shards_are_back_soon() {
    let mut driver = driver(3_000, Policy::default());
    let kept = kept(&mut driver, "logs-2");
    assert!((2_000..LONGEST).contains(&kept), "{kept}");
    assert_eq!(step(&driver, "logs-1"), Some(MemberStep::Restarting));
    assert_eq!(driver.ledger_writes, 3, "the restart, the first slot, and this");
}

#[test] // proves RESTART-141
fn it_does_not_wait_for_a_long_recovery() {
    let mut driver = driver(60_000, Policy::default());
    let kept = kept(&mut driver, "logs-2");
    assert!((LONGEST..LONGEST + 1_000).contains(&kept), "{kept}");
    assert_eq!(step(&driver, "logs-1"), Some(MemberStep::Scheduled));
}

#[test] // proves RESTART-141
fn it_does_not_wait_where_the_next_node_does_not() {
    let policy =
        Policy { disabled: Disabled::by_annotation(Predicate::Yellow.name()), ..Policy::default() };
    let kept_without_the_rule = kept(&mut driver(60_000, policy), "logs-2");
    assert!(kept_without_the_rule < 1_000, "{kept_without_the_rule}");
    let mut last = driver(3_000, Policy::default());
    let kept_by_the_last = kept(&mut last, "logs-0");
    assert!(kept_by_the_last < 1_000, "{kept_by_the_last}");
    assert!(last.world.ledger().restart.is_none(), "the end of the restart is the same write");
}
