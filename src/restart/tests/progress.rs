//! Events and estimates during a long restart, and events about unknown names in the policy.

use super::driver::Driver;
use super::scenario::play_line;
use super::world::World;
use crate::{Disabled, Policy, Reason, Share, plan, report};

fn driver(nodes: usize) -> Driver {
    let names: Vec<String> = (0..nodes).map(|at| format!("logs-{at}")).collect();
    let role = |at: usize| if at < 3 { "master" } else { "data" };
    let nodes: Vec<(&str, &str)> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), role(at))).collect();
    Driver::new(World::new(&nodes), Policy::default())
}

fn messages(driver: &Driver, reason: Reason) -> Vec<&str> {
    let events = driver.world.events.iter().filter(|(_, event)| event.reason == reason);
    events.map(|(_, event)| event.message.as_str()).collect()
}

fn play(driver: &mut Driver, lines: &[&str]) {
    lines.iter().for_each(|line| play_line(driver, line));
    assert_eq!(driver.verdict(), Vec::<String>::new());
}

#[test]
fn every_tenth_of_many_nodes_is_told_once_and_the_end_by_its_own_event() {
    let mut driver = driver(12);
    play(
        &mut driver,
        &[
            "request rolling r1",
            "run until logs-7 shows start",
            // The next controller repeats no event, and its estimate uses what was done before.
            "crash",
            "run until done",
        ],
    );
    let found = messages(&driver, Reason::RestartProgress);
    let counts: Vec<&str> =
        found.iter().filter_map(|message| message.split([':', ',']).nth(1)).collect();
    let expected = [2, 3, 4, 5, 6, 8, 9, 10, 11].map(|done| format!(" {done} of 12 nodes done"));
    assert_eq!(counts, expected);
    assert!(
        found.iter().all(|message| message.contains(", estimate: ") && message.ends_with(" left")),
        "{found:?}"
    );
    assert_eq!(self::messages(&driver, Reason::RestartFinished).len(), 1);
}

#[test]
fn of_a_few_nodes_each_is_told_and_nothing_besides() {
    let mut driver = driver(9);
    play(&mut driver, &["request rolling r1", "run until done"]);
    assert_eq!(messages(&driver, Reason::RestartProgress), Vec::<&str>::new());
    assert_eq!(messages(&driver, Reason::NodeRestarted).len(), 9);
}

/// The status is written when the estimate changes, and that must not be at every plan.
#[test]
fn the_estimate_is_there_while_it_goes_on_and_moves_in_steps() {
    let mut driver = driver(12);
    play_line(&mut driver, "request rolling r1");
    let (mut plans, mut shown) = (0, Vec::new());
    while driver.world.ledger().history.is_empty() {
        driver.run(500, |_| false);
        let (snapshot, _) = driver.world.observe(&driver.flushed);
        let made = plan(&snapshot, &driver.policy);
        let estimate = report(&snapshot, &driver.policy, &made).estimate;
        plans += 1;
        if shown.last() != Some(&estimate) {
            shown.push(estimate);
        }
        assert!(plans < 100_000, "it does not end: {shown:?}");
    }
    play_line(&mut driver, "run until done");
    assert_eq!(driver.verdict(), Vec::<String>::new());
    assert!(plans > 100, "{plans}");
    let some: Vec<&String> = shown.iter().flatten().collect();
    assert!(some.len() >= 11, "with each node that is done: {some:?}");
    assert!(shown.len() <= 3 * 12, "{} of {plans} plans: {shown:?}", shown.len());
    assert!(some[0].ends_with("estimated from 1 of 12 nodes"), "{some:?}");
    assert_eq!(shown.last(), Some(&None), "and gone with the restart");
}

#[test]
fn a_name_that_disables_nothing_is_told_in_the_same_words_and_stops_nobody() {
    let mut driver = driver(3);
    driver.policy.disabled = Disabled::by_annotation("require_started_replicas");
    play(&mut driver, &["request rolling r1", "run until done"]);
    // Every plan has the event; the controller creates it once.
    let mut ignored = messages(&driver, Reason::InputIgnored);
    ignored.dedup();
    assert_eq!(
        ignored,
        ["\"require_started_replicas\" in eck.k8s.elastic.co/disable-upgrade-predicates is not a \
          predicate and disables nothing: the nearest name is require_started_replica"]
    );
    assert_eq!(messages(&driver, Reason::NodeRestarted).len(), 3);
}

#[test]
fn a_limit_for_a_role_that_no_node_has_is_told_once_a_restart() {
    let mut driver = driver(3);
    let limits = [("data_hto", 1), ("cluster_manager", 1)];
    let limits = limits.map(|(role, nodes)| (role.to_owned(), Share::Nodes(nodes)));
    driver.policy.max_unavailable_of_role = limits.into();
    play(&mut driver, &["request rolling r1", "run until done"]);
    assert_eq!(
        messages(&driver, Reason::InputIgnored),
        ["spec.restart.maxUnavailableOfRole limits data_hto, a role that no node has: it limits \
          nothing; the nodes have the roles master"]
    );
}
