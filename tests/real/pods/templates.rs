//! The edited template of an OnDelete StatefulSet, carried out by the reconciler on a real kubelet:
//! what stays of each pod, row by row. The engines are stand-ins; claims and volumes are real.

mod seen;
mod set;

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::bare::{install, keys};
use super::fixture::{ENGINE, Fixture, MANAGER};
use super::nodes::{NODES, Node, until_formed};
use crate::support::http::exchange;
use crate::support::skip::skip;
use crate::support::wait::eventually;
use seen::{Seen, seen};
use set::{tier, volumes};

/// The engine's image under another name.
const OTHER: &str = "stayput.test/engine:2";
/// Nobody has it.
const ABSENT: &str = "stayput.test/engine:absent";

#[test]
fn an_edited_template_reaches_the_pods_that_exist() {
    let fixture = match Fixture::lay("restricted") {
        Ok(fixture) => fixture,
        Err(why) => {
            let test = "pods::templates::an_edited_template_reaches_the_pods_that_exist";
            return skip(test, &why);
        }
    };
    let storage = super::figures::storage();
    fixture.cluster.images.tag(ENGINE, OTHER);
    keys(&fixture);
    volumes(&fixture, &storage);
    tier(&fixture, "hot");
    let mut stage = Stage::set_up(&fixture);

    stage.labels();
    stage.image();
    stage.variable();
    stage.absent_image();
    stage.affinity();

    let path = "jsonpath={.status.history[*].outcome}";
    let outcomes = fixture.run(&["get", "searchcluster", "logs", "--output", path]);
    assert_eq!(outcomes, "done done rolledBack done");
}

/// The cluster, and its template as it was edited last.
struct Stage<'a> {
    fixture: &'a Fixture,
    template: Value,
    pods: Vec<Seen>,
}

impl<'a> Stage<'a> {
    /// Three nodes with a document, and a mark on each pod's own volume; templates are carried out.
    fn set_up(fixture: &'a Fixture) -> Self {
        let set = set::stateful_set(fixture);
        let template = set["spec"]["template"].clone();
        fixture.admin().apply(&set);
        for name in NODES {
            let pod = format!("pod/{name}");
            fixture.run(&["wait", "--for=create", "--timeout=60s", &pod]);
            fixture.run(&["wait", "--for=condition=Ready", "--timeout=120s", &pod]);
        }
        let nodes = super::nodes::observe(fixture, MANAGER);
        until_formed(&nodes);
        write(&nodes["logs-0"]);
        let pods = seen(fixture);
        for pod in &pods {
            fs::write(mark(fixture, pod), "kept").expect("the volume is there");
        }
        install(fixture, "logs-config");
        fixture.people.run("kubectl apply -k deploy/replace");
        let allow = ["relabel", "restart", "container", "resize", "replace"];
        let spec = json!({ "spec": { "update": { "mode": "inPlace", "allow": allow } } });
        let patch = spec.to_string();
        fixture.run(&["patch", "searchcluster", "logs", "--type=merge", "--patch", &patch]);
        eventually("what the containers were started with is noted", || {
            let path = "jsonpath={.items[*].metadata.annotations.stayput\\.dev/content}";
            let notes = fixture.run(&["get", "pods", "--selector=app=logs", "--output", path]);
            (notes.matches("ConfigMap variables").count() == NODES.len()).then_some(())
        });
        Self { fixture, template, pods }
    }

    /// Labels: nothing is restarted.
    fn labels(&mut self) {
        self.template["metadata"]["labels"]["team"] = json!("a");
        let (before, after) = self.row("labels");
        assert_eq!(after, before);
        let path = "jsonpath={.items[*].metadata.labels.team}";
        let teams = self.fixture.run(&["get", "pods", "--selector=app=logs", "--output", path]);
        assert_eq!(teams, "a a a");
    }

    /// Another name of the image: another container in the same pod.
    fn image(&mut self) {
        self.template["spec"]["containers"][0]["image"] = json!(OTHER);
        let (before, after) = self.row("image");
        self.other_containers_in_the_same_pods(&before, &after);
        assert!(after.iter().all(|pod| pod.image == OTHER), "{after:#?}");
    }

    /// A variable from a ConfigMap: another container in the same pod.
    fn variable(&mut self) {
        assert_eq!(self.tiers(), ["hot"; 3]);
        tier(self.fixture, "warm");
        let began = Instant::now();
        // At rest such objects are read once a minute; a person's restart does not wait for that.
        self.fixture.people.run("kubectl stayput -n search restart logs --watch");
        let (before, after) = self.row("variable");
        println!("with a person's restart: {} ms", began.elapsed().as_millis());
        self.other_containers_in_the_same_pods(&before, &after);
        assert_eq!(self.tiers(), ["warm"; 3]);
    }

    /// An image that nobody has: the first node comes back on the image that it had, and the others
    /// are not stopped.
    fn absent_image(&mut self) {
        let good = self.template.clone();
        self.template["spec"]["containers"][0]["image"] = json!(ABSENT);
        let began = Instant::now();
        set::edit(self.fixture, &self.template);
        let entry = eventually("the restart is given up", || {
            let logs = self.fixture.json(&["get", "searchcluster", "logs"]);
            let last = logs["status"]["history"].as_array()?.last()?.clone();
            (last["outcome"] == "rolledBack").then_some(last)
        });
        println!("an absent image is given up: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        assert!(reason.contains("ErrImageNeverPull"), "{reason}");
        let (before, after) = (self.pods.clone(), self.until_ready());
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert_eq!(others.count(), 1, "one node was stopped: {after:#?}");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(is.same_pod(), was.same_pod());
            assert_eq!(is.image, OTHER);
        }
        assert_eq!(set::status(self.fixture)["updatedReplicas"], Value::Null);
        self.pods = after.clone();

        self.template = good;
        let (_, again) = self.row("the template is set back");
        assert_eq!(again, after, "all have it, and nothing is restarted");
    }

    /// Affinity: other pods of the same names, on the same claims.
    fn affinity(&mut self) {
        let term = json!({ "matchExpressions": [{ "key": "none", "operator": "DoesNotExist" }] });
        let preferred = json!([{ "weight": 1, "preference": term }]);
        self.template["spec"]["affinity"] = json!({
            "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": preferred },
        });
        let (before, after) = self.row("affinity");
        for (was, is) in before.iter().zip(&after) {
            assert_ne!(is.uid, was.uid, "{}: {after:#?}", is.name);
            assert_eq!(is.claim, was.claim);
        }
    }

    /// Edits the set; waits until its controller counts all pods as updated, and they serve.
    fn row(&mut self, what: &str) -> (Vec<Seen>, Vec<Seen>) {
        let began = Instant::now();
        set::edit(self.fixture, &self.template);
        eventually("all pods are updated, and nothing is under way", || {
            (set::status(self.fixture)["updatedReplicas"] == 3).then_some(())
        });
        self.fixture.until_idle();
        let after = self.until_ready();
        println!("{what}: {} ms", began.elapsed().as_millis());
        (std::mem::replace(&mut self.pods, after.clone()), after)
    }

    /// The pods, once they are ready, one cluster, and have the document.
    fn until_ready(&self) -> Vec<Seen> {
        let pods = eventually("all pods are ready", || {
            let pods = seen(self.fixture);
            (pods.len() == 3 && pods.iter().all(|pod| pod.ready)).then_some(pods)
        });
        for pod in &pods {
            let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
            let health = eventually("three nodes, green", || pod.ask(target));
            assert_eq!(health["timed_out"], false, "{health:#}");
            let document = pod.ask("/load/_doc/1").expect("the document is there");
            assert_eq!(document["_source"]["number"], 1, "{document:#}");
        }
        pods
    }

    #[track_caller]
    fn other_containers_in_the_same_pods(&self, before: &[Seen], after: &[Seen]) {
        for (was, is) in before.iter().zip(after) {
            assert_eq!(is.same_pod(), was.same_pod());
            assert_ne!(is.container, was.container, "{}", is.name);
            let mark = fs::read_to_string(mark(self.fixture, is)).expect("the mark");
            assert_eq!(mark, "kept", "{}", is.name);
        }
    }

    /// The variable as each engine has it.
    fn tiers(&self) -> Vec<String> {
        let nodes = self.pods[0].ask("/_nodes").expect("the engine answers");
        let nodes = nodes["nodes"].as_object().expect("nodes").values();
        let tiers =
            nodes.map(|node| node["attributes"]["tier"].as_str().expect("a tier").to_owned());
        tiers.collect()
    }
}

/// A file on the pod's own volume.
fn mark(fixture: &Fixture, pod: &Seen) -> std::path::PathBuf {
    fixture.cluster.empty_dir(&pod.uid, "state").join("mark")
}

/// An index with a document.
fn write(node: &Node) {
    let settings = json!({ "settings": { "number_of_shards": 2, "number_of_replicas": 1 } });
    let document = json!({ "number": 1 });
    for (target, body) in
        [("/load?wait_for_active_shards=all", settings), ("/load/_doc/1", document)]
    {
        let stream = std::net::TcpStream::connect((node.address.as_str(), 9200));
        let answer = exchange(stream.expect("it listens"), ("PUT", target), Some(&body));
        let answer = answer.expect("an answer");
        assert!(matches!(answer.status, 200 | 201), "{target}: {:#}", answer.body);
    }
}
