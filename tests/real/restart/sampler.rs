//! Observes the cluster all the time: its color, its size, and the settings of the reconciler.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::support::cluster::Rest;

/// Pause between two observations.
const PACE: Duration = Duration::from_millis(100);

/// What was observed, each value once.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The number of answers.
    pub(crate) answers: usize,
    /// `green 3`: color and number of nodes.
    pub(crate) health: BTreeSet<(String, u64)>,
    /// The persistent settings.
    pub(crate) settings: BTreeSet<String>,
    /// Ids of the elected masters, in order, without repetitions.
    pub(crate) masters: Vec<String>,
    /// Names of the nodes that were excluded from voting.
    pub(crate) excluded: BTreeSet<String>,
    /// Nodes with a shutdown record, and the record's type.
    pub(crate) records: BTreeSet<(String, String)>,
}

/// Observes until [`Sampler::end`].
pub(crate) struct Sampler {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Sampler {
    pub(crate) fn start(nodes: &[Rest]) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (is_over, nodes) = (ended.clone(), nodes.to_vec());
        let thread = thread::spawn(move || {
            let mut seen = Seen::default();
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;
                observe(nodes[turn % nodes.len()], &mut seen);
                thread::sleep(PACE);
            }
            seen
        });
        Self { ended, thread }
    }

    pub(crate) fn end(self) -> Seen {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sampler ends")
    }
}

/// One observation of one node; none from a node without a master.
fn observe(node: Rest, seen: &mut Seen) {
    let get = |target: &str| -> Option<Value> {
        let answer = node.send("GET", target, None).ok()?;
        (answer.status == 200).then_some(answer.body)
    };
    let Some(health) = get("/_cluster/health?master_timeout=1s") else { return };
    let color = health["status"].as_str().unwrap_or("no color").to_owned();
    seen.health.insert((color, health["number_of_nodes"].as_u64().unwrap_or(0)));
    seen.answers += 1;
    if let Some(settings) = get("/_cluster/settings?flat_settings=true&master_timeout=1s") {
        seen.settings.insert(settings["persistent"].to_string());
    }
    let state = get("/_cluster/state/master_node,metadata?master_timeout=1s\
         &filter_path=master_node,metadata.cluster_coordination");
    if let Some(master) = state.as_ref().and_then(|state| state["master_node"].as_str())
        && seen.masters.last().is_none_or(|last| last != master)
    {
        seen.masters.push(master.to_owned());
    }
    let exclusions = state.iter().flat_map(|state| {
        state["metadata"]["cluster_coordination"]["voting_config_exclusions"].as_array()
    });
    let names = exclusions.flatten().filter_map(|one| one["node_name"].as_str());
    seen.excluded.extend(names.map(str::to_owned));
    if let Some(records) = get("/_nodes/shutdown") {
        for record in records["nodes"].as_array().into_iter().flatten() {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            seen.records.insert((text("node_id"), text("type")));
        }
    }
}
