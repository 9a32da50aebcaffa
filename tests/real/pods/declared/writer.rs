//! A client that writes documents while something happens to the nodes.

use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::pods::fixture::Fixture;
use crate::pods::nodes::Node;
use crate::support::http::exchange;

/// Three masters more and three less, one at a time, on a busy machine.
const MOST: Duration = Duration::from_secs(900);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// Writes documents from this number on until `is_over`; returns the number of the next.
#[track_caller]
pub(super) fn write_until(fixture: &Fixture, first: usize, is_over: impl Fn() -> bool) -> usize {
    let (mut next, deadline) = (first, Instant::now() + MOST);
    while !is_over() {
        assert!(Instant::now() < deadline, "it does not end");
        let pods = fixture.pods();
        let mut addresses = pods.iter().filter_map(|pod| pod["status"]["podIP"].as_str());
        if addresses.any(|address| write(address, next)) {
            next += 1;
        }
        sleep(PAUSE);
    }
    next
}

/// Checks that each document up to this number is there.
#[track_caller]
pub(super) fn assert_kept(node: &Node, written: usize) {
    let lost: Vec<usize> =
        (0..written).filter(|id| node.ask(&format!("/docs/_doc/{id}")).is_none()).collect();
    assert!(lost.is_empty(), "{lost:?} of {written}");
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
