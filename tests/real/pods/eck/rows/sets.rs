//! A node more and less, a node set more and less.

use std::time::Instant;

use serde_json::{Value, json};

use crate::pods::eck::edits::Edits;
use crate::pods::eck::in_place::BUFFER;
use crate::pods::eck::stage::{NODES, Stage};
use crate::support::wait::eventually;

const SETS: &str = "/spec/nodeSets";

impl Edits {
    /// The other nodes go on.
    pub(super) fn count_up_and_down(&mut self) {
        let count =
            |count| json!([{ "op": "replace", "path": "/spec/nodeSets/0/count", "value": count }]);
        self.other_nodes("a node more", NODES.len() + 1, &count(NODES.len() + 1));
        self.stage.move_data_off("logs-es-default-3");
        self.other_nodes("a node less", NODES.len(), &count(NODES.len()));
    }

    /// One setting in both: all nodes get it in place.
    pub(super) fn two_node_sets(&mut self) {
        let mut more = self.stage.elasticsearch()["spec"]["nodeSets"][0].take();
        more["name"] = json!("more");
        more["count"] = json!(2);
        more["config"]["node.roles"] = json!(["data", "ingest"]);
        let add = json!([{ "op": "add", "path": format!("{SETS}/-"), "value": more }]);
        self.other_nodes("a node set more", NODES.len() + 2, &add);

        let in_both = [0, 1].map(|set| {
            json!({ "op": "add", "path": format!("{SETS}/{set}/config/{BUFFER}"), "value": "12%" })
        });
        self.restarted("a setting in two node sets", |stage| stage.edit(&json!(in_both)));
        self.assert_setting(BUFFER, "12%");

        self.stage.move_data_off("logs-es-more-*");
        let remove = json!([{ "op": "remove", "path": format!("{SETS}/1") }]);
        self.other_nodes("a node set less", NODES.len(), &remove);
    }

    /// Makes an edit after which there are this many nodes; those that stay go on.
    fn other_nodes(&mut self, what: &str, nodes: usize, edit: &Value) {
        let began = Instant::now();
        self.stage.edit(edit);
        self.stage.nodes = nodes;
        eventually(what, || (self.fixture().pods().len() == nodes).then_some(()));
        self.stage.exclude(&Value::Null);
        for (was, is) in self.settle() {
            assert_eq!(is, was, "{what}");
        }
        println!("{what}: {} ms", began.elapsed().as_millis());
    }
}

impl Stage {
    /// Has all copies moved off nodes of this name, as shutdown records for a removal do: those of the engines here
    /// say at once that they have.
    fn move_data_off(&self, name: &str) {
        self.exclude(&json!(name));
        let stem = name.trim_end_matches('*');
        eventually("all copies are moved", || {
            let copies = self.ask("_cat/shards?format=json&h=node")?;
            let is_left =
                |copy: &Value| copy["node"].as_str().is_none_or(|node| node.contains(stem));
            (!copies.as_array()?.iter().any(is_left)).then_some(())
        });
    }

    /// Has no copies allocated to nodes of this name.
    fn exclude(&self, name: &Value) {
        let setting = json!({ "persistent": { "cluster.routing.allocation.exclude._name": name } });
        self.engines.ask("PUT", "_cluster/settings", Some(&setting)).expect("it is taken");
    }
}
