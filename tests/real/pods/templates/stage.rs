//! The cluster whose template is edited, and its pods before and after.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::set;
use crate::pods::bare::{install, keys};
use crate::pods::fixture::{Fixture, MANAGER};
use crate::pods::nodes::{NODES, Node, observe, until_formed, until_ready};
use crate::pods::seen::{Seen, assert_other_containers_in_the_same_pods, seen};
use crate::pods::stateful_set::{edit, local_volumes, until_updated};
use crate::support::http::exchange;
use crate::support::skip;
use crate::support::wait::eventually;

/// The cluster, and its template as it was edited last.
pub(super) struct Stage {
    pub(super) fixture: Fixture,
    pub(super) template: Value,
    pub(super) pods: Vec<Seen>,
    _storage: TempDir,
}

impl Stage {
    /// Three nodes with a document, and a mark on each pod's own volume; templates are carried out.
    /// None if something is missing here.
    pub(super) fn set_up(test: &str) -> Option<Self> {
        let fixture = match Fixture::lay("restricted") {
            Ok(fixture) => fixture,
            Err(why) => {
                skip(test, &why);
                return None;
            }
        };
        keys(&fixture);
        let storage = local_volumes(&fixture, &NODES);
        let template = set::make(&fixture);
        until_ready(&fixture, &NODES);
        let nodes = observe(&fixture, MANAGER);
        until_formed(&nodes);
        write(&nodes["logs-0"]);
        let pods = seen(&fixture);
        let stage = Self { fixture, template, pods, _storage: storage };
        for pod in &stage.pods {
            fs::write(stage.mark(pod), "kept").expect("the volume is there");
        }
        stage.carry_templates_out();
        Some(stage)
    }

    fn carry_templates_out(&self) {
        let fixture = &self.fixture;
        install(fixture, "logs-config");
        fixture.people.run("kubectl apply -k deploy/replace");
        let allow = ["relabel", "restart", "container", "resize", "replace"];
        fixture.configure(&json!({ "update": { "mode": "inPlace", "allow": allow } }));
    }

    /// The engine's container in the template.
    pub(super) fn container(&mut self) -> &mut Value {
        &mut self.template["spec"]["containers"][0]
    }

    /// Gives each container this much memory, in the template.
    pub(super) fn want_memory(&mut self, memory: &str) {
        for kind in ["requests", "limits"] {
            self.container()["resources"][kind]["memory"] = json!(memory);
        }
    }

    /// Gives the set the template.
    pub(super) fn edit(&self) {
        edit(&self.fixture, &self.template);
    }

    /// Edits the set; waits until its controller counts all pods as updated, and they serve.
    pub(super) fn row(&mut self, what: &str) -> (Vec<Seen>, Vec<Seen>) {
        let began = Instant::now();
        self.edit();
        let pods = self.until_updated();
        println!("{what}: {} ms", began.elapsed().as_millis());
        pods
    }

    /// The pods before, and once they are all as the template wants them, and serve.
    pub(super) fn until_updated(&mut self) -> (Vec<Seen>, Vec<Seen>) {
        until_updated(&self.fixture);
        self.fixture.until_idle();
        self.until_serving()
    }

    /// The pods before, and now, once they are ready, one cluster, and have the document.
    pub(super) fn until_serving(&mut self) -> (Vec<Seen>, Vec<Seen>) {
        let pods = eventually("all pods are ready", || {
            let pods = seen(&self.fixture);
            (pods.len() == NODES.len() && pods.iter().all(|pod| pod.ready)).then_some(pods)
        });
        for pod in &pods {
            let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
            eventually("three nodes, green", || pod.ask(target));
            let document = pod.ask("/load/_doc/1").expect("the document is there");
            assert_eq!(document["_source"]["number"], 1, "{document:#}");
        }
        (std::mem::replace(&mut self.pods, pods.clone()), pods)
    }

    #[track_caller]
    pub(super) fn assert_other_containers_in_the_same_pods(&self, before: &[Seen], after: &[Seen]) {
        assert_other_containers_in_the_same_pods(before, after);
        for is in after {
            let mark = fs::read_to_string(self.mark(is)).expect("the mark");
            assert_eq!(mark, "kept", "{}", is.name);
        }
    }

    /// An attribute of the nodes, as each engine has it.
    pub(super) fn attribute(&self, name: &str) -> Vec<String> {
        let nodes = self.pods[0].ask("/_nodes").expect("the engine answers");
        let nodes = nodes["nodes"].as_object().expect("nodes").values();
        let value = |node: &Value| node["attributes"][name].as_str().expect("text").to_owned();
        nodes.map(value).collect()
    }

    /// A file on the pod's own volume.
    fn mark(&self, pod: &Seen) -> PathBuf {
        self.fixture.cluster.empty_dir(&pod.uid, "state").join("mark")
    }
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
