//! The five nodes, and what every test does with them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchClusterStatus;
use stayput_restart::{HistoryEntry, NodeReport, Outcome, Strategy};

use crate::restart::fixture::{Fixture, NodeFacts, NodeSpec, until};
use crate::restart::step;
use crate::support::http::Answer;

/// Three can be elected, one of which also holds data, and two are only data nodes. The zones `z0`
/// and `z1` each hold a copy of every shard that has a replica; `z2` holds no data.
pub(super) const NODE_SPECS: [NodeSpec; 5] = [
    NodeSpec { name: "logs-m-0", zone: "z0", roles: Some(&["cluster_manager"]) },
    NodeSpec { name: "logs-m-1", zone: "z1", roles: Some(&["cluster_manager", "data"]) },
    NodeSpec { name: "logs-m-2", zone: "z2", roles: Some(&["cluster_manager", "search"]) },
    NodeSpec { name: "logs-d-0", zone: "z0", roles: Some(&["data"]) },
    NodeSpec { name: "logs-d-1", zone: "z1", roles: Some(&["data"]) },
];
/// The nodes that can be elected.
pub(super) const MASTERS: [&str; 3] = ["logs-m-0", "logs-m-1", "logs-m-2"];
/// An index with as many documents as [`DOCUMENTS`].
pub(super) const DOCS: &str = "docs";
pub(super) const DOCUMENTS: usize = 20;

/// A recovery that has not begun for so many milliseconds never does.
const HANGS: u64 = 30_000;

/// The cluster.
pub(super) struct FiveNodes {
    pub(super) fixture: Fixture,
    /// How often all rules were gone through before.
    pub(super) round: u32,
}

impl FiveNodes {
    /// Spreads copies over zones, and stores some documents.
    pub(super) fn new(fixture: Fixture) -> Self {
        let cluster = Self { fixture, round: 0 };
        cluster.fixture.set(&json!({ "cluster.routing.allocation.awareness.attributes": "zone" }));
        let settings = json!({ "settings": { "number_of_shards": 3, "number_of_replicas": 1 } });
        cluster.ask_engine("PUT", &format!("/{DOCS}?wait_for_active_shards=all"), Some(&settings));
        let rest = cluster.fixture.nodes()[0];
        assert!((0..DOCUMENTS).all(|id| rest.index(DOCS, id)));
        cluster.ask_engine("POST", &format!("/{DOCS}/_refresh"), None);
        cluster.fixture.until_formed();
        cluster
    }

    /// A name for a request that no earlier round has used.
    pub(super) fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.round)
    }

    /// Sends a request to the nodes until one answers as expected. A request that failed may have been carried out.
    #[track_caller]
    pub(super) fn ask_engine(&self, method: &str, target: &str, body: Option<&Value>) -> Value {
        let nodes = self.fixture.nodes();
        let mut may_be_done = false;
        until(&format!("{method} {target}"), || {
            nodes.iter().find_map(|node| {
                let answer = node.send(method, target, body).ok();
                let is_repeat = may_be_done;
                may_be_done |= answer.as_ref().is_none_or(|answer| answer.status >= 500);
                let is_done = |answer: &Answer| match (method, answer.status) {
                    (_, 200) => true,
                    ("PUT", 400) => {
                        is_repeat
                            && answer.body["error"]["type"] == "resource_already_exists_exception"
                    }
                    ("DELETE", 404) => is_repeat,
                    _ => false,
                };
                answer.filter(is_done).map(|answer| answer.body)
            })
        })
    }

    /// Name of the elected master.
    #[track_caller]
    pub(super) fn elected(&self) -> String {
        let state = self.fixture.engine("/_cluster/state/master_node,nodes");
        let id = state["master_node"].as_str().expect("an elected master");
        state["nodes"][id]["name"].as_str().expect("a name").to_owned()
    }

    /// Runs a command as users do.
    #[track_caller]
    pub(super) fn stayput(&self, args: &[&str]) -> String {
        let (is_done, printed) = self.fixture.stayput(args);
        assert!(is_done, "kubectl stayput {args:?}: {printed}");
        printed
    }

    /// Waits until this rule blocks the node; returns the message in the status and of `kubectl
    /// stayput why`, which is called until it has seen the status as well.
    #[track_caller]
    pub(super) fn until_blocked(&self, node: &str, rule: &str) -> String {
        let row = |status: &SearchClusterStatus| -> Option<NodeReport> {
            let mut rows = status.report.nodes.iter();
            rows.find(|row| row.name == node && row.blocked_by.as_deref() == Some(rule)).cloned()
        };
        let status = self
            .fixture
            .until_status(&format!("{rule} keeps {node}"), |status| row(status).is_some());
        let message = row(&status).and_then(|row| row.message).expect("a sentence");
        println!("{node}: {rule}: {message}");
        let blocked = status.report.conditions.iter().find(|one| one.kind == "Blocked");
        assert_eq!(blocked.map(|one| one.status.as_str()), Some("True"), "{status:#?}");
        let why = self.stayput(&["why", node]);
        assert!(why.contains(rule), "{why}");
        message
    }

    /// Waits until the restart is done, and checks that it restarted these nodes and no others,
    /// that all other processes stayed, and that the cluster is complete.
    #[track_caller]
    pub(super) fn until_done(
        &self,
        id: &str,
        before: &BTreeMap<String, NodeFacts>,
        nodes: &[&str],
    ) -> BTreeMap<String, NodeFacts> {
        let entry: HistoryEntry = self.fixture.until_over(id);
        step(&format!("{id} took {} s", entry.seconds));
        assert_eq!(
            (entry.outcome, entry.nodes as usize),
            (Outcome::Done, nodes.len()),
            "{entry:?}"
        );
        assert_eq!(entry.strategy, Strategy::Rolling);
        // The last node's copies may still be recovering, or the engine may be slow to answer.
        let not_green = ["the cluster was not green yet", "the cluster's health was not known"];
        let is_not_green = not_green.iter().any(|text| entry.reason.starts_with(text));
        assert!(entry.reason.is_empty() || is_not_green, "{entry:?}");
        let after = self.fixture.facts();
        for (name, is) in &after {
            let was = &before[name];
            if nodes.contains(&name.as_str()) {
                assert_ne!(was.run, is.run, "{name}");
                assert!(is.ephemeral.is_some() && was.ephemeral != is.ephemeral, "{name}: {is:?}");
                let last = self.fixture.last_restart(name);
                assert_eq!((last.id.as_str(), last.outcome), (id, Outcome::Done), "{name}");
            } else {
                assert_eq!(was, is, "{name}");
            }
            assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot), "{name}");
            assert_eq!(was.id, is.id, "{name}");
        }
        let ledger = self.fixture.status().ledger;
        assert!(ledger.debts.is_empty() && ledger.restart.is_none(), "{ledger:#?}");
        after
    }

    /// The same after an outage of masters. OpenSearch may then promote a copy and forget its new primary term: that
    /// primary takes no write and builds no replica. It is taken from its node as the runbook says.
    #[track_caller]
    pub(super) fn until_whole_after_outage(&self) {
        until("green", || {
            let health = self.fixture.engine("/_cluster/health");
            if health["status"] == "green" {
                return Some(());
            }
            self.begin_vain_primaries_anew();
            None
        });
        self.until_whole();
    }

    fn begin_vain_primaries_anew(&self) {
        let target = "/_cat/recovery?active_only=true&format=json&time=ms&h=index,shard,time,stage,source_node";
        let active = self.fixture.engine(target);
        let hangs = |one: &&Value| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            text("stage") == "init" && text("time").parse().is_ok_and(|time: u64| time > HANGS)
        };
        for one in active.as_array().into_iter().flatten().filter(hangs) {
            println!("its primary builds no replica, and is begun anew: {one}");
            let shard: u64 =
                one["shard"].as_str().and_then(|shard| shard.parse().ok()).expect("a number");
            let primary = json!({
                "index": one["index"], "shard": shard, "node": one["source_node"], "allow_primary": true,
            });
            let body = json!({ "commands": [{ "cancel": primary }] });
            self.ask_engine("POST", "/_cluster/reroute?filter_path=acknowledged", Some(&body));
        }
    }

    /// Waits until the cluster is complete and at rest; checks that nothing of [`DOCS`] was lost.
    #[track_caller]
    pub(super) fn until_whole(&self) {
        self.fixture.until_formed();
        let rest = self.fixture.nodes()[0];
        let found = until("a whole answer", || rest.search(DOCS));
        assert_eq!(found, DOCUMENTS as u64);
    }
}
