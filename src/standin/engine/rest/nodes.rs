//! `/` and `/_nodes`: the nodes and their processes.

use serde_json::{Map, Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request, wrong_method};
use crate::engine::cluster::{Command, Failure, NodeInfo, Shutdown, State, now_ms};
use crate::engine::config::Distribution;

/// The metrics of `/_nodes`; the answers here differ only for the first four and the settings.
const METRICS: [&str; 14] = [
    "jvm",
    "process",
    "http",
    "transport",
    "os",
    "settings",
    "plugins",
    "thread_pool",
    "ingest",
    "aggregations",
    "indices",
    "search_pipelines",
    "_all",
    "_none",
];

impl Node {
    pub(super) fn banner(&self) -> Answer {
        let state = self.cluster.local_state();
        let mut version = json!({
            "number": self.cluster.me().version,
            "build_type": "stand-in",
            "build_snapshot": false,
        });
        let tagline = match self.config.behaviour.distribution {
            Distribution::OpenSearch => {
                version["distribution"] = json!("opensearch");
                "The OpenSearch Project: https://opensearch.org/"
            }
            Distribution::Elasticsearch => {
                version["build_flavor"] = json!("default");
                "You Know, for Search"
            }
        };
        let body = json!({
            "name": self.config.node_name,
            "cluster_name": self.config.cluster_name,
            "cluster_uuid": super::state::uuid(&state),
            "version": version,
            "tagline": tagline,
        });
        Answer::json(200, body)
    }

    /// `/_nodes[/{nodes}][/{metrics}]`.
    pub(super) fn nodes(&self, request: &Request, rest: &[&str]) -> Answered {
        let are_metrics = |text: &str| text.split(',').all(|name| METRICS.contains(&name));
        let (filter, metrics) = match *rest {
            [] => ("_all", "_all"),
            [one] if one != "_all" && are_metrics(one) => ("_all", one),
            [one] => (one, "_all"),
            [filter, metrics, ..] => (filter, metrics),
        };
        if request.query.contains_key("timeout") {
            request.time("timeout", super::DEFAULT_TIMEOUT)?;
        }
        let state = self.cluster.local_state();
        let wanted: Vec<&NodeInfo> = (state.nodes.values())
            .filter(|node| filter.split(',').any(|name| self.is_named(&state, node, name)))
            .collect();
        let metrics: Vec<&str> = metrics.split(',').collect();
        let (mut nodes, mut failures) = (Map::new(), Vec::new());
        for node in &wanted {
            match self.cluster.ask_about(node) {
                Ok(node) => {
                    let mut info = info(&node, &metrics);
                    if self.has_shutdown() {
                        info["build_flavor"] = json!("default");
                    }
                    nodes.insert(node.id.clone(), info);
                }
                Err(failure) => failures.push(json!({
                    "type": "failed_node_exception",
                    "reason": format!("Failed node [{}]", node.id),
                    "node_id": node.id,
                    "caused_by": {"type": failure.kind, "reason": failure.reason},
                })),
            }
        }
        let mut counts = json!({
            "total": wanted.len(), "successful": nodes.len(), "failed": failures.len(),
        });
        if !failures.is_empty() {
            counts["failures"] = json!(failures);
        }
        let cluster_name = &self.config.cluster_name;
        Ok(Answer::json(
            200,
            json!({"_nodes": counts, "cluster_name": cluster_name, "nodes": nodes}),
        ))
    }

    fn is_named(&self, state: &State, node: &NodeInfo, name: &str) -> bool {
        match name {
            "_all" => true,
            "_local" => node.id == self.cluster.me().id,
            "_master" | "_cluster_manager" => state.master.as_ref() == Some(&node.id),
            name => node.id == name || node.name == name,
        }
    }
}

fn info(node: &NodeInfo, metrics: &[&str]) -> Value {
    let wanted = |name: &str| metrics.contains(&name) || metrics.contains(&"_all");
    let host = host(&node.transport);
    let mut info = json!({
        "name": node.name,
        "transport_address": node.transport,
        "host": host,
        "ip": host,
        "version": node.version,
        "build_type": "stand-in",
        "roles": node.roles,
        "attributes": node.attributes,
    });
    if wanted("process") {
        info["process"] =
            json!({"refresh_interval_in_millis": 1000, "id": node.pid, "mlockall": false});
    }
    if wanted("jvm") {
        info["jvm"] = json!({"pid": node.pid, "start_time_in_millis": node.started_ms});
    }
    if wanted("http") {
        info["http"] = json!({"bound_address": [node.http], "publish_address": node.http});
    }
    if wanted("settings") {
        info["settings"] = json!({"path": {"data": node.data, "home": "/usr/share/standin"}});
    }
    if wanted("transport") {
        info["transport"] = json!({
            "bound_address": [node.transport], "publish_address": node.transport, "profiles": {},
        });
    }
    info
}

/// The host of `host:port`.
pub(super) fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

// `/_nodes/{id}/shutdown` of Elasticsearch; whether such a node exists is not checked.

impl Node {
    pub(super) fn shutdown(&self, request: &Request, method: &str, id: &str) -> Answered {
        let id = id.to_owned();
        match method {
            "GET" => self.shutdowns(request, Some(&id)),
            "PUT" => self.put_shutdown(request, id),
            "DELETE" => {
                self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
                let done = self.cluster.command(Command::DeleteShutdown { node: id })?;
                Ok(Answer::json(200, done))
            }
            "OPTIONS" => {
                let answer = Answer::text(200, String::new());
                Ok(Answer { allow: Some("PUT,DELETE,GET"), ..answer })
            }
            _ => Ok(wrong_method(request, "PUT, DELETE, GET")),
        }
    }

    /// All records, or the record of one node.
    pub(super) fn shutdowns(&self, request: &Request, only: Option<&str>) -> Answered {
        let state = self.state(request)?;
        let records = state.shutdowns.iter().filter(|(id, _)| only.is_none_or(|only| only == *id));
        let records: Vec<Value> = records.map(|(id, record)| shown(id, record)).collect();
        Ok(Answer::json(200, json!({"nodes": records})))
    }

    fn put_shutdown(&self, request: &Request, node: String) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let illegal = |reason: String| Failure::new(400, "illegal_argument_exception", reason);
        let (Some(kind), Some(reason)) = (text("type"), text("reason")) else {
            return Err(illegal("Required [type, reason]".to_owned()));
        };
        if !["restart", "remove", "replace"].contains(&kind.to_ascii_lowercase().as_str()) {
            return Err(illegal(format!(
                "No enum constant org.elasticsearch.cluster.metadata.SingleNodeShutdownMetadata.\
                 Type.{}",
                kind.to_ascii_uppercase()
            )));
        }
        let record = Shutdown {
            kind: kind.to_ascii_lowercase(),
            reason,
            started_ms: now_ms(),
            allocation_delay: text("allocation_delay"),
        };
        let done = self.cluster.command(Command::PutShutdown { node, record })?;
        Ok(Answer::json(200, done))
    }
}

fn shown(id: &str, record: &Shutdown) -> Value {
    let mut shown = json!({
        "node_id": id,
        "type": record.kind.to_ascii_uppercase(),
        "reason": record.reason,
        "shutdown_startedmillis": record.started_ms,
        "status": "COMPLETE",
        "shard_migration": {
            "status": "COMPLETE",
            "shard_migrations_remaining": 0,
            "explanation": "no shard relocation is necessary for a node restart",
        },
        "persistent_tasks": {"status": "COMPLETE"},
        "plugins": {"status": "COMPLETE"},
    });
    if let Some(delay) = &record.allocation_delay {
        shown["allocation_delay"] = json!(delay);
    }
    shown
}
