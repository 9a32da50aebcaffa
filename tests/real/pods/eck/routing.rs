//! What the engines do with the copies of an index while nodes are restarted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::Stage;

const INDEX: &str = "quiet";
pub(super) const DOCUMENTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(200);

/// Where copies were, and what held the engines back from making others.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The number of a shard, and the id of a node that had a copy of it, or began to make one.
    pub(super) copies: BTreeSet<(String, String)>,
    /// Values of `cluster.routing.allocation.enable`.
    pub(super) allocation: BTreeSet<String>,
    /// Nodes that had a shutdown record.
    pub(super) records: BTreeSet<String>,
}

/// An index with two copies of each shard. A copy whose node leaves is made anew on another one at once, unless
/// something holds that back.
pub(super) fn create(stage: &Stage) {
    let settings = json!({ "settings": {
        "number_of_shards": 3,
        "number_of_replicas": 1,
        "index.unassigned.node_left.delayed_timeout": "0s",
    } });
    let put = |target: &str, body: &Value| {
        stage.engines.ask("PUT", target, Some(body)).expect("it is taken");
    };
    put(&format!("{INDEX}?wait_for_active_shards=all"), &settings);
    for id in 0..DOCUMENTS {
        put(&format!("{INDEX}/_doc/{id}"), &json!({ "id": id }));
    }
}

/// How many documents are found.
pub(super) fn documents(stage: &Stage) -> usize {
    stage.engines.ask("POST", &format!("{INDEX}/_refresh"), None).expect("it is done");
    let count = stage.ask(&format!("{INDEX}/_count")).expect("an answer");
    assert_eq!(count["_shards"]["failed"], 0, "{count:#}");
    usize::try_from(count["count"].as_u64().expect("a number")).expect("a small number")
}

impl Seen {
    /// Looks once.
    pub(super) fn look(&mut self, stage: &Stage) {
        let routing =
            format!("_cluster/state/routing_table/{INDEX}?local=true&filter_path=routing_table");
        if let Some(state) = stage.ask(&routing) {
            self.copies.extend(copies(&state["routing_table"]["indices"][INDEX]["shards"]));
        }
        let settings = "_cluster/settings?flat_settings=true&master_timeout=1s";
        if let Some(settings) = stage.ask(settings) {
            let kinds = ["persistent", "transient"].map(|kind| &settings[kind]);
            let values = kinds.map(|kind| kind["cluster.routing.allocation.enable"].as_str());
            self.allocation.extend(values.into_iter().flatten().map(str::to_owned));
        }
        if let Some(shutdown) = stage.ask("_nodes/shutdown") {
            let nodes = shutdown["nodes"].as_array().into_iter().flatten();
            self.records.extend(nodes.map(|node| node["node_id"].to_string()));
        }
    }

    /// Looks again and again while `work` is done.
    pub(super) fn during(stage: &Stage, work: impl FnOnce()) -> Self {
        let is_over = AtomicBool::new(false);
        scope(|threads| {
            let looks = threads.spawn(|| {
                let mut seen = Self::default();
                while !is_over.load(Ordering::Relaxed) {
                    seen.look(stage);
                    sleep(PAUSE);
                }
                seen
            });
            // Also if the work panics: a scope waits for its threads.
            let end = End(&is_over);
            work();
            drop(end);
            looks.join().expect("no panic")
        })
    }
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copies(shards: &Value) -> impl Iterator<Item = (String, String)> {
    let shards = shards.as_object().into_iter().flatten();
    shards.flat_map(|(number, copies)| {
        let copies = copies.as_array().into_iter().flatten();
        let nodes =
            copies.flat_map(|copy| [copy["node"].as_str(), copy["relocating_node"].as_str()]);
        nodes.flatten().map(|node| (number.clone(), node.to_owned()))
    })
}
