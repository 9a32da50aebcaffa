//! What the engine answers: the few routes of the real ones that operators and probes use.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::config::Config;
use super::data::{Data, is_document_id};
use super::http::{Answer, Request};

/// A node as its HTTP interface sees it.
pub(super) struct Node {
    pub(super) config: Config,
    pub(super) data: Data,
    /// Started, and not yet stopping.
    pub(super) ready: AtomicBool,
}

impl Node {
    /// Answers one request.
    pub(super) fn answer(&self, request: &Request) -> Answer {
        if let Some(id) = request.path.strip_prefix("/docs/") {
            return match (request.method.as_str(), is_document_id(id)) {
                (_, false) => failure(400, "a document's name is made of letters, digits, - and _"),
                ("GET", true) => document_read(id, self.data.get(id)),
                ("PUT", true) => self.write_document(id, &request.body),
                _ => failure(405, "documents can be read (GET) and written (PUT)"),
            };
        }
        let body = match request.path.as_str() {
            "/" => self.banner(),
            "/_cluster/health" => return self.health(),
            "/_nodes/_local" => self.info(),
            path => return failure(404, &format!("no handler found for uri [{path}]")),
        };
        match request.method.as_str() {
            "GET" => Answer { status: 200, body },
            _ => failure(405, "only GET is allowed here"),
        }
    }

    fn banner(&self) -> Value {
        json!({
            "name": self.config.node_name,
            "cluster_name": self.config.cluster_name,
            "version": {"number": env!("CARGO_PKG_VERSION"), "build_flavor": "stand-in"},
            "tagline": "You Know, for Testing",
        })
    }

    fn health(&self) -> Answer {
        let ready = self.ready.load(Ordering::SeqCst);
        let body = json!({
            "cluster_name": self.config.cluster_name,
            "status": if ready { "green" } else { "red" },
            "timed_out": false,
            "number_of_nodes": 1,
            "number_of_data_nodes": 1,
        });
        Answer { status: if ready { 200 } else { 503 }, body }
    }

    fn info(&self) -> Value {
        let node = json!({
            "name": self.config.node_name,
            "attributes": self.config.attributes,
            "process": {"id": std::process::id()},
        });
        json!({
            "cluster_name": self.config.cluster_name,
            "nodes": {self.config.node_name.as_str(): node},
        })
    }

    fn write_document(&self, id: &str, body: &[u8]) -> Answer {
        if serde_json::from_slice::<Value>(body).is_err() {
            return failure(400, "a document is a piece of JSON");
        }
        match self.data.put(id, body) {
            Ok(true) => Answer { status: 201, body: json!({"_id": id, "result": "created"}) },
            Ok(false) => Answer { status: 200, body: json!({"_id": id, "result": "updated"}) },
            Err(error) => failure(500, &format!("cannot keep the document: {error}")),
        }
    }
}

fn document_read(id: &str, read: io::Result<Option<Vec<u8>>>) -> Answer {
    let content = match read {
        Ok(Some(content)) => content,
        Ok(None) => return Answer { status: 404, body: json!({"_id": id, "found": false}) },
        Err(error) => return failure(500, &format!("cannot read the document: {error}")),
    };
    match serde_json::from_slice::<Value>(&content) {
        Ok(source) => {
            Answer { status: 200, body: json!({"_id": id, "found": true, "_source": source}) }
        }
        Err(error) => failure(500, &format!("the document on disk is damaged: {error}")),
    }
}

fn failure(status: u16, sentence: &str) -> Answer {
    Answer { status, body: json!({"error": sentence, "status": status}) }
}
