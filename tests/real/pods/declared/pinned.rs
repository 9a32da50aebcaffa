//! An engine that ends by itself while a change waits that all nodes need at once.

use std::collections::BTreeMap;
use std::time::Instant;

use super::STAYPUT;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{Node, observe_killed, until_formed};
use crate::pods::seen::{Seen, seen};
use crate::pods::victim::Victim;
use crate::support::wait::eventually;

const NODE: &str = "logs-all-1";

/// Kills the engine of a node of whose config another version is mounted: it comes back in its pod on
/// the one that it ran on, and is in the cluster again. Returns the nodes as they are then.
pub(super) fn killed(fixture: &Fixture, before: &BTreeMap<String, Node>) -> BTreeMap<String, Node> {
    // The kubelet looks for other content when a pod is changed; otherwise it may take a minute.
    fixture.run(&["annotate", "pod", NODE, "looked-at=now"]);
    eventually("the changed config is mounted", || {
        let nodes = observe_killed(fixture, STAYPUT);
        (nodes[NODE].status["config"]["drift"] == true).then_some(())
    });
    let (pods, began) = (seen(fixture), Instant::now());
    Victim::Engine.kill_in_pod(fixture, NODE);
    let was = pods.iter().find(|pod| pod.name == NODE).expect("it is there");
    let back = eventually("its container is made anew and ready", || {
        let now = seen(fixture);
        let is = now.iter().find(|pod| pod.name == NODE)?;
        (is.ready && is.container != was.container).then_some(now)
    });
    until_formed(before);
    println!("{NODE}, whose engine was killed, is back: {} ms", began.elapsed().as_millis());
    assert!(back.iter().map(Seen::same_pod).eq(pods.iter().map(Seen::same_pod)), "{back:#?}");
    let after = observe_killed(fixture, STAYPUT);
    for (name, node) in &after {
        assert_eq!(node.checksum(), before[name].checksum(), "{name}: {:#}", node.status);
        assert_eq!(node.run() != before[name].run(), name == NODE, "{name}: {:#}", node.status);
        assert_eq!(node.stays != before[name].stays, name == NODE, "{name}: {:#}", node.status);
    }
    assert_eq!(after[NODE].status["config"]["drift"], true, "{:#}", after[NODE].status);
    after
}
