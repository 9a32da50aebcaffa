//! A config that is set back once a node is starting with it.

use std::time::Instant;

use serde_json::json;

use super::STAYPUT;
use crate::pods::fixture::Fixture;
use crate::pods::history::{history, waits};
use crate::pods::nodes::{Node, attribute, observe_all, until_formed};
use crate::support::wait::{eventually_briefly, eventually_or};

/// Declares another config, by its round, and the one that there is again while the first node is
/// starting. That node is finished and restarted once more, the others are not; all end on the config from
/// before.
pub(super) fn set_back_while_a_node_starts(fixture: &Fixture, declare: impl Fn(&str)) {
    let (before, known) = (observe_all(fixture, STAYPUT), history(fixture).len());
    let is_as_before = |name: &str, node: &Node| node.checksum() == before[name].checksum();
    let began = Instant::now();
    declare("third");
    let first = eventually_briefly("a node is starting with the other config", || {
        let nodes = observe_all(fixture, STAYPUT);
        let starting = |(name, node): &(String, Node)| {
            node.status["state"] == "starting" && !is_as_before(name, node)
        };
        nodes.into_iter().find(starting)
    });
    declare("second");
    fixture.people.run("kubectl stayput -n search watch logs --timeout 15m");
    let both = || (history(fixture).len() >= known + 2).then_some(());
    eventually_or("it is restarted once more", both, || waits(fixture));
    fixture.until_idle();
    println!("a config that is set back: {} ms", began.elapsed().as_millis());
    until_formed(&before);
    let after = observe_all(fixture, STAYPUT);
    let (name, starting) = first;
    for (node, is) in &after {
        assert_eq!(is.stays, before[node].stays, "{node} is another pod or container");
        assert!(is_as_before(node, is), "{node}: {:#}", is.status);
        assert_eq!(is.run() != before[node].run(), *node == name, "{node}: {:#}", is.status);
    }
    assert_ne!(after[&name].run(), starting.run(), "{name} was not restarted once more");
    assert_eq!(attribute(&after, "round"), vec![json!("second"); 3]);
    let ended: Vec<_> = history(fixture).split_off(known);
    let outcome = |entry: &serde_json::Value| entry["outcome"].clone();
    assert_eq!(ended.iter().map(outcome).collect::<Vec<_>>(), ["done"; 2], "{ended:#?}");
}
