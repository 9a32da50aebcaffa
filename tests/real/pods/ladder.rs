//! An edited template comes to three real OpenSearch nodes by the least step, while a client writes
//! through a Service: what stays of each pod, row by row.

mod given_up;
mod killed;
mod read_at_start;
mod rows;
mod set_back;

use std::time::Instant;

use serde_json::{Value, json};

use super::clients::{Clients, Count, document};
use super::door::Door;
use super::fixture::Fixture;
use super::history::outcomes;
use super::nodes::NODES;
use super::opensearch_set::OpenSearchSet;
use super::seen::{Seen, seen};
use super::stateful_set::{edit, until_updated};
use crate::support::wait::eventually;

#[test] // proves UPDATE-14, RESTART-29, RESTART-105, RESTART-75, RESTART-76, UPDATE-34, FIGURE-8
fn documents_are_written_throughout_and_none_is_lost() {
    const TEST: &str = "pods::ladder::documents_are_written_throughout_and_none_is_lost";
    let Some(mut ladder) = Ladder::set_up(TEST) else { return };
    let clients = Clients::start(ladder.fixture(), Door::plain());
    // A kubelet makes a container anew in the same pod with the same image at once only the first
    // time, so images and pods change in between. A config is changed after what is given up: a node
    // is brought back on a config that was good for a minute.
    let rows: [fn(&mut Ladder); 11] = [
        Ladder::labels,
        Ladder::set_back_before_anything_is_done,
        Ladder::variable,
        Ladder::image,
        Ladder::set_back_afterwards,
        Ladder::absent_image,
        Ladder::size,
        Ladder::affinity,
        |ladder| ladder.config(),
        Ladder::file,
        Ladder::set_back_in_the_middle,
    ];
    for row in rows {
        let before = clients.written();
        row(&mut ladder);
        assert!(clients.written() > before, "nothing was written meanwhile");
    }
    let ended = outcomes(ladder.fixture());
    assert_eq!(ended, "done done done rolledBack done aborted done done done done done");

    let count = ladder.assert_none_lost(clients);
    assert!(count.writes.refused <= 3, "unanswered through the Service: {:?}", count.writes);
}

/// The set, its template as it was edited last, and its pods.
struct Ladder {
    set: OpenSearchSet,
    template: Value,
    pods: Vec<Seen>,
}

impl Ladder {
    /// Every step is allowed. None if something is missing here.
    fn set_up(test: &str) -> Option<Self> {
        let set = OpenSearchSet::set_up(test, "600Mi", read_at_start::add)?;
        set.fixture.people.run("kubectl apply -k deploy/replace");
        let allow = ["relabel", "restart", "container", "resize", "replace"];
        set.fixture.configure(&json!({ "update": { "mode": "inPlace", "allow": allow } }));
        Some(Self { template: set.template.clone(), pods: seen(&set.fixture), set })
    }

    fn fixture(&self) -> &Fixture {
        &self.set.fixture
    }

    /// Ends the clients, and asks for each document whose write was answered.
    fn assert_none_lost(&self, clients: Clients) -> Count {
        let count = clients.end();
        println!("{:?}, {:?}, failing for {:?}", count.writes, count.searches, count.failing);
        let lost = |number: &u32| self.pods[0].ask(&document(*number)).is_none();
        let lost: Vec<u32> = count.kept.iter().copied().filter(lost).collect();
        assert!(lost.is_empty(), "{lost:?}");
        count
    }

    fn container(&mut self) -> &mut Value {
        &mut self.template["spec"]["containers"][0]
    }

    /// Gives the set the template.
    fn edit(&self) {
        edit(self.fixture(), &self.template);
    }

    /// Edits the set; returns the pods before, and once they are all as the template wants them.
    fn row(&mut self, what: &str) -> (Vec<Seen>, Vec<Seen>) {
        let began = Instant::now();
        self.edit();
        let pods = self.until_updated();
        println!("{what}: {} ms", began.elapsed().as_millis());
        pods
    }

    /// A person asks for a restart, and waits for its end.
    fn restart(&self, what: &str) {
        let began = Instant::now();
        self.fixture().people.run("kubectl stayput -n search restart logs --watch");
        println!("{what}, with a person's restart: {} ms", began.elapsed().as_millis());
    }

    /// The pods before, and once their controller counts all as updated, and they serve.
    fn until_updated(&mut self) -> (Vec<Seen>, Vec<Seen>) {
        until_updated(self.fixture());
        self.fixture().until_idle();
        self.until_serving()
    }

    /// The pods before, and now, once they are ready and one cluster.
    fn until_serving(&mut self) -> (Vec<Seen>, Vec<Seen>) {
        self.set.until_green();
        let pods = eventually("all pods are ready", || {
            let pods = seen(self.fixture());
            (pods.len() == NODES.len() && pods.iter().all(|pod| pod.ready)).then_some(pods)
        });
        (std::mem::replace(&mut self.pods, pods.clone()), pods)
    }

    /// What each engine says of its JVM.
    fn jvms(&self) -> Vec<Value> {
        let nodes = self.pods[0].ask("/_nodes/jvm").expect("the engine answers");
        let nodes = nodes["nodes"].as_object().expect("nodes").values();
        nodes.map(|node| node["jvm"].clone()).collect()
    }
}
