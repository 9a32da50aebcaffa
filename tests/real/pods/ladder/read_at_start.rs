//! The ConfigMap that the engine's container reads when it is started: a variable, and a file
//! mounted by `subPath`.

use serde_json::{Value, json};

use super::Ladder;
use crate::pods::fixture::Fixture;
use crate::pods::nodes::NODES;
use crate::pods::seen::assert_other_containers_in_the_same_pods;
use crate::support::wait::eventually;

const NAME: &str = "read-at-start";
/// Its keys.
const VARIABLE: &str = "tier";
const FILE: &str = "words.options";

/// Makes the ConfigMap, and adds it to the spec: as an attribute of the node, and among the files
/// with options for the JVM. It is written once: one that is changed a second before the containers
/// are started may not be what they have, so it is not noted.
pub(super) fn add(fixture: &Fixture, spec: &mut Value) {
    fixture.admin().apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": "search" },
        "data": { VARIABLE: "hot", FILE: "-Dwords=fast\n" },
    }));
    let container = &mut spec["containers"][0];
    let push = |list: &mut Value, value| list.as_array_mut().expect("a list").push(value);
    let from = json!({ "configMapKeyRef": { "name": NAME, "key": VARIABLE } });
    push(&mut container["env"], json!({ "name": "TIER", "valueFrom": from }));
    push(&mut container["command"], json!("-Enode.attr.tier=$(TIER)"));
    let at = format!("/config/jvm.options.d/{FILE}");
    let mount = json!({ "name": NAME, "mountPath": at, "subPath": FILE, "readOnly": true });
    push(&mut container["volumeMounts"], mount);
    push(&mut spec["volumes"], json!({ "name": NAME, "configMap": { "name": NAME } }));
}

impl Ladder {
    /// A variable: another container in the same pod.
    pub(super) fn variable(&mut self) {
        assert_eq!(self.tiers(), ["hot"; NODES.len()]);
        self.changed_at_start(VARIABLE, "warm");
        assert_eq!(self.tiers(), ["warm"; NODES.len()]);
    }

    /// A file that is mounted by `subPath`: another container in the same pod.
    pub(super) fn file(&mut self) {
        assert_eq!(self.words(), ["-Dwords=fast"; NODES.len()]);
        self.changed_at_start(FILE, "-Dwords=rapid\n");
        assert_eq!(self.words(), ["-Dwords=rapid"; NODES.len()]);
    }

    /// Changes a key of the ConfigMap, and a person asks for a restart. While the cluster is paused,
    /// the reconciler requests no restart itself.
    fn changed_at_start(&mut self, key: &str, value: &str) {
        let fixture = self.fixture();
        eventually("what the containers were started with is noted", || {
            let path = "jsonpath={.items[*].metadata.annotations.stayput\\.dev/content}";
            let notes = fixture.run(&["get", "pods", "--selector=app=logs", "--output", path]);
            (notes.matches(&format!("ConfigMap {NAME}")).count() == NODES.len()).then_some(())
        });
        fixture.configure(&json!({ "paused": true }));
        let patch = json!({ "data": { key: value } }).to_string();
        fixture.run(&["patch", "configmap", NAME, "--type=merge", "--patch", &patch]);
        fixture.people.run("kubectl stayput -n search restart logs");
        fixture.configure(&json!({ "paused": false }));
        fixture.people.run("kubectl stayput -n search watch logs");
        let (before, after) = self.until_updated();
        assert_other_containers_in_the_same_pods(&before, &after);
    }

    /// The attribute of each node.
    fn tiers(&self) -> Vec<String> {
        let nodes = self.pods[0].ask("/_nodes").expect("the engine answers");
        let nodes = nodes["nodes"].as_object().expect("nodes").values();
        let tier = |node: &Value| node["attributes"]["tier"].as_str().expect("text").to_owned();
        nodes.map(tier).collect()
    }

    /// The option that each JVM has from the file.
    fn words(&self) -> Vec<String> {
        let jvms = self.jvms();
        let options = jvms.iter().map(|jvm| jvm["input_arguments"].as_array().expect("a list"));
        let word = |options: &Vec<Value>| {
            let mut options = options.iter().filter_map(Value::as_str);
            options.find(|option| option.starts_with("-Dwords=")).expect("an option").to_owned()
        };
        options.map(word).collect()
    }
}
