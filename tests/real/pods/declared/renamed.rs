//! A node set gets another name: other nodes are made, the data moves to them, and the old ones go.

use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{EXCLUDED, STAYPUT, declared};
use crate::pods::fixture::Fixture;
use crate::pods::nodes::{observe_all, until_formed};
use crate::pods::opensearch::Parts;
use crate::support::http::exchange;

/// Three masters more and three less, one at a time, on a busy machine.
const MOST: Duration = Duration::from_secs(900);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// Renames the set; the index `docs` has as many documents. More are written meanwhile, and none is
/// lost. `excluded` are names that a person has excluded from allocation.
pub(super) fn rename(fixture: &Fixture, parts: &Parts, documents: usize, excluded: &str) {
    let began = Instant::now();
    fixture.admin().apply(&declared(fixture, parts, "other", 3, "second"));
    let written = write_until_gone(fixture, documents);
    println!(
        "a set of three renamed, {} documents written meanwhile: {} ms",
        written - documents,
        began.elapsed().as_millis()
    );
    assert!(written > documents, "the client could write");

    let nodes = observe_all(fixture, STAYPUT);
    assert!(nodes.keys().eq(["logs-other-0", "logs-other-1", "logs-other-2"]), "{nodes:#?}");
    until_formed(&nodes);
    let node = nodes.values().next().expect("a node");
    let lost: Vec<usize> =
        (0..written).filter(|id| node.ask(&format!("/docs/_doc/{id}")).is_none()).collect();
    assert!(lost.is_empty(), "{lost:?} of {written}");
    fixture.until_idle();
    let logs = fixture.json(&["get", "searchcluster", "logs"]);
    assert_eq!(logs["status"]["debts"], Value::Null);
    let settings = node.ask("/_cluster/settings?flat_settings=true").expect("settings");
    assert_eq!(settings["persistent"][EXCLUDED], excluded);
    let state = node.ask("/_cluster/state/metadata").expect("a state");
    let votes = &state["metadata"]["cluster_coordination"];
    assert_eq!(votes["voting_config_exclusions"], json!([]));
}

/// Writes documents from this number on until the old set is gone; returns the number of the next.
fn write_until_gone(fixture: &Fixture, first: usize) -> usize {
    let (mut next, deadline) = (first, Instant::now() + MOST);
    loop {
        let sets = fixture.run(&["get", "statefulsets", "--output", "name"]);
        if !sets.contains("logs-all") {
            return next;
        }
        assert!(Instant::now() < deadline, "the old set was not removed: {sets}");
        let path = "jsonpath={.items[*].status.podIP}";
        let addresses = fixture.run(&["get", "pods", "--selector", "app=logs", "--output", path]);
        if addresses.split_whitespace().any(|address| write(address, next)) {
            next += 1;
        }
        sleep(PAUSE);
    }
}

/// Whether the document was acknowledged.
fn write(address: &str, id: usize) -> bool {
    // The address of a pod that is gone does not answer.
    let address = SocketAddr::new(address.parse().expect("an address"), 9200);
    let Ok(stream) = TcpStream::connect_timeout(&address, ANSWER) else { return false };
    if stream.set_read_timeout(Some(ANSWER)).is_err() {
        return false;
    }
    let target = format!("/docs/_doc/{id}");
    let answer = exchange(stream, ("PUT", &target), Some(&json!({ "id": id })));
    answer.is_ok_and(|answer| answer.status < 300)
}
