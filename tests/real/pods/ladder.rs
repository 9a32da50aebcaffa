//! Labels, a config, an image, a size and an affinity come to three real OpenSearch nodes, while a
//! client writes through a Service.

use std::time::Instant;

use serde_json::{Value, json};

use super::clients::{Clients, document};
use super::fixture::{MANAGER, OTHER};
use super::nodes::{NODES, assert_restarted_in_place, attribute, observe};
use super::opensearch_set::OpenSearchSet;
use super::seen::{Seen, seen};
use super::stateful_set::{any_node, edit, until_updated};
use crate::support::wait::eventually;

#[test]
fn documents_are_written_throughout_and_none_is_lost() {
    const TEST: &str = "pods::ladder::documents_are_written_throughout_and_none_is_lost";
    let Some(set) = OpenSearchSet::set_up(TEST, "600Mi") else { return };
    set.carry_templates_out("inPlace");
    let mut ladder = Ladder { template: set.template.clone(), pods: seen(&set.fixture), set };
    let clients = Clients::start(&ladder.set.fixture);

    ladder.template["metadata"]["labels"]["team"] = json!("a");
    let (before, after) = ladder.row("labels");
    assert_eq!(after, before);

    ladder.config();

    ladder.container()["image"] = json!(OTHER);
    let (before, after) = ladder.row("image");
    other_containers_in_the_same_pods(&before, &after);
    assert!(after.iter().all(|pod| pod.image == OTHER), "{after:#?}");

    let small = ladder.heaps();
    for kind in ["requests", "limits"] {
        ladder.container()["resources"][kind]["memory"] = json!("900Mi");
    }
    let (before, after) = ladder.row("size");
    for (was, is) in before.iter().zip(&after) {
        assert_eq!((is.same_pod(), &is.container), (was.same_pod(), &was.container));
    }
    assert!(after.iter().all(|pod| pod.memory == "900Mi"), "{after:#?}");
    let large = ladder.heaps();
    println!("heaps: {small:?}, then {large:?}");
    assert!(small.iter().max() < large.iter().min(), "{small:?}, then {large:?}");

    ladder.affinity();
    assert_eq!(ladder.heaps(), large);

    let count = clients.end();
    println!("{} writes, {} refused, {} failed", count.sent, count.refused, count.failed);
    let lost = |number: &u32| ladder.pods[0].ask(&document(*number)).is_none();
    let lost: Vec<u32> = count.kept.into_iter().filter(lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// The set, its template as it was edited last, and its pods.
struct Ladder {
    set: OpenSearchSet,
    template: Value,
    pods: Vec<Seen>,
}

impl Ladder {
    fn container(&mut self) -> &mut Value {
        &mut self.template["spec"]["containers"][0]
    }

    /// Edits the set; waits until its controller counts all pods as updated, and they serve.
    fn row(&mut self, what: &str) -> (Vec<Seen>, Vec<Seen>) {
        let (fixture, began) = (&self.set.fixture, Instant::now());
        edit(fixture, &self.template);
        until_updated(fixture);
        fixture.until_idle();
        self.set.until_green();
        let pods = eventually("all pods are ready", || {
            let pods = seen(fixture);
            (pods.len() == NODES.len() && pods.iter().all(|pod| pod.ready)).then_some(pods)
        });
        println!("{what}: {} ms", began.elapsed().as_millis());
        (std::mem::replace(&mut self.pods, pods.clone()), pods)
    }

    /// A changed Secret: other processes in the same containers.
    fn config(&self) {
        let fixture = &self.set.fixture;
        let before = observe(fixture, MANAGER);
        let expected = self.set.configure("second", "");
        let began = Instant::now();
        fixture.people.run("kubectl stayput -n search restart logs --watch");
        self.set.until_green();
        println!("config: {} ms", began.elapsed().as_millis());
        let after = observe(fixture, MANAGER);
        assert_restarted_in_place(&before, &after, |_| expected.clone());
        assert_eq!(attribute(&after, "round"), vec![json!("second"); NODES.len()]);
        assert_eq!(seen(fixture), self.pods);
    }

    /// Another affinity: other pods of the same names, on the same claims.
    fn affinity(&mut self) {
        self.set.fixture.people.run("kubectl apply -k deploy/replace");
        let patch = json!({ "spec": { "update": { "allow": ["replace"] } } }).to_string();
        let change = ["patch", "searchcluster", "logs", "--type=merge", "--patch", &patch];
        self.set.fixture.run(&change);
        self.template["spec"]["affinity"] = any_node();
        let (before, after) = self.row("affinity");
        for (was, is) in before.iter().zip(&after) {
            assert_ne!(is.uid, was.uid, "{}: {after:#?}", is.name);
            assert_eq!((&is.claim, &is.memory), (&was.claim, &was.memory), "{}", is.name);
        }
    }

    /// The largest heap of each engine.
    fn heaps(&self) -> Vec<u64> {
        let nodes = self.pods[0].ask("/_nodes/jvm").expect("the engine answers");
        let nodes = nodes["nodes"].as_object().expect("nodes").values();
        let heap = |node: &Value| node["jvm"]["mem"]["heap_max_in_bytes"].as_u64();
        nodes.map(|node| heap(node).expect("a number")).collect()
    }
}

#[track_caller]
fn other_containers_in_the_same_pods(before: &[Seen], after: &[Seen]) {
    for (was, is) in before.iter().zip(after) {
        assert_eq!(is.same_pod(), was.same_pod());
        assert_ne!(is.container, was.container, "{}", is.name);
    }
}
