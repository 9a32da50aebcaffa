//! `/_nodes/{id}/shutdown` of Elasticsearch; whether such a node exists is not checked.

use serde_json::{Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request, wrong_method};
use crate::engine::cluster::{Command, Failure, Shutdown, now_ms};

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
