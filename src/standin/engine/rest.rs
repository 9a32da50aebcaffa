//! The REST interface: the routes of the real engines that operators and probes use, with answers
//! in the form of OpenSearch 2.19 and Elasticsearch 8.19, from recordings.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::cluster::{Cluster, Failure, State, time_value};
use super::config::{Config, Distribution};
use super::data::is_document_id;
use super::http::{Answer, Body, Request};

mod cat;
mod health;
mod indices;
mod nodes;
mod state;

/// How long the real engines wait for a master or for a health by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A node as its HTTP interface sees it.
pub(super) struct Node {
    pub(super) config: Config,
    pub(super) cluster: Arc<Cluster>,
    /// Started, and not yet stopping.
    pub(super) ready: AtomicBool,
}

/// An answer, or a failure.
type Answered = Result<Answer, Failure>;

impl Node {
    /// Answers one request.
    pub(super) fn answer(&self, request: &Request) -> Answer {
        let mut answer = self.route(request).unwrap_or_else(|failure| self.failed(failure));
        if let (Body::Json(body), Some(filter)) =
            (&mut answer.body, request.query.get("filter_path"))
            && answer.status < 400
        {
            *body = filtered(body, filter);
        }
        answer
    }

    fn route(&self, request: &Request) -> Answered {
        let path: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
        if let ["docs", id] = path[..]
            && !id.starts_with('_')
        {
            return Ok(self.document_of_this_node(method, id, &request.body));
        }
        match (method, &path[..]) {
            ("GET", []) => Ok(self.banner()),
            ("GET", ["_cluster", "health", rest @ ..]) if rest.len() < 2 => {
                Ok(self.health(request, rest.first().copied())?)
            }
            (_, ["_cluster", "health"]) => Ok(wrong_method(request, "GET")),
            ("GET", ["_cluster", "state", rest @ ..]) => self.cluster_state(request, rest),
            ("GET", ["_cluster", "settings"]) => self.settings(request),
            ("GET" | "POST", ["_cluster", "allocation", "explain"]) => self.explain(request),
            ("POST", ["_cluster", "voting_config_exclusions"]) => self.exclude_votes(request),
            ("DELETE", ["_cluster", "voting_config_exclusions"]) => self.clear_votes(request),
            ("PUT", ["_cluster", "settings"]) => self.put_settings(request),
            ("GET", ["_nodes", "shutdown"]) if self.has_shutdown() => self.shutdowns(request, None),
            (_, ["_nodes", id, "shutdown"]) if self.has_shutdown() => {
                self.shutdown(request, method, id)
            }
            ("GET", ["_nodes", rest @ ..]) if rest.len() < 3 => self.nodes(request, rest),
            (_, ["_nodes", _, _]) => Ok(wrong_method(request, "GET")),
            ("GET", ["_cat", "nodes"]) => self.cat_nodes(request),
            ("GET", ["_cat", "shards", rest @ ..]) => {
                self.cat_shards(request, rest.first().copied())
            }
            ("GET", ["_cat", "indices"]) => self.cat_indices(request),
            ("GET" | "POST", ["_flush"]) => self.flush(request, None),
            ("GET" | "POST", ["_flush", "synced"]) if !self.has_shutdown() => {
                self.flush(request, None)
            }
            ("GET", ["_settings" | "_all", ..]) => self.index_settings(request, None),
            (_, [index, ..]) if index.starts_with('_') => Ok(unknown(request, &path)),
            ("PUT", [index]) => self.create_index(request, index),
            ("GET", [index]) => self.index(request, index),
            ("DELETE", [index]) => self.delete_index(index),
            ("GET", [index, "_settings"]) => self.index_settings(request, Some(index)),
            ("PUT", [index, "_settings"]) => self.put_index_settings(request, index),
            ("POST", [index, "_close"]) => self.close_index(index),
            ("POST", [index, "_open"]) => self.open_index(index),
            ("GET" | "POST", [index, "_flush"]) => self.flush(request, Some(index)),
            ("GET" | "POST", [index, "_refresh"]) => self.refresh(request, index),
            ("GET" | "POST", [index, "_count"]) => self.count(request, index),
            ("GET" | "POST", [index, "_search"]) => self.search(request, index),
            ("POST", [index, "_doc"]) => self.write_document(request, index, None),
            ("PUT" | "POST", [index, "_doc", id]) => self.write_document(request, index, Some(id)),
            ("GET", [index, "_doc", id]) => self.read_document(index, id),
            _ => Ok(unknown(request, &path)),
        }
    }

    /// Whether it has the node-shutdown routes, and lacks those that Elasticsearch 8 removed.
    fn has_shutdown(&self) -> bool {
        self.config.behaviour.distribution == Distribution::Elasticsearch
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// The state, if there is a master.
    fn state(&self, request: &Request) -> Result<State, Failure> {
        if request.flag("local") {
            return Ok(self.cluster.local_state());
        }
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)
    }

    fn failed(&self, mut failure: Failure) -> Answer {
        if self.has_shutdown() {
            failure.kind = failure.kind.replace("cluster_manager_not", "master_not");
        }
        Answer::json(failure.status, failure.body())
    }

    /// A document outside of any index; the other nodes do not know it.
    fn document_of_this_node(&self, method: &str, id: &str, body: &[u8]) -> Answer {
        let data = self.cluster.data();
        match (method, is_document_id(id)) {
            (_, false) => failure(400, "a document's name is made of letters, digits, - and _"),
            ("GET", true) => document_read(id, data.get(id)),
            ("PUT", true) if serde_json::from_slice::<Value>(body).is_err() => {
                failure(400, "a document is a piece of JSON")
            }
            ("PUT", true) => match data.put(id, body) {
                Ok(true) => Answer::json(201, json!({"_id": id, "result": "created"})),
                Ok(false) => Answer::json(200, json!({"_id": id, "result": "updated"})),
                Err(error) => failure(500, &format!("cannot keep the document: {error}")),
            },
            _ => failure(405, "documents can be read (GET) and written (PUT)"),
        }
    }
}

impl Request {
    /// Whether a parameter is given and not `false`.
    fn flag(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| value != "false")
    }

    /// A parameter that is a duration.
    fn time(&self, name: &str, default: Duration) -> Result<Duration, Failure> {
        let Some(value) = self.query.get(name) else { return Ok(default) };
        let reason =
            || format!("failed to parse setting [{name}] with value [{value}] as a time value");
        time_value(value)
            .map(Duration::from_millis)
            .ok_or_else(|| Failure::new(400, "illegal_argument_exception", reason()))
    }

    /// How long to wait for a master.
    fn master_timeout(&self, default: Duration) -> Result<Duration, Failure> {
        let time = self.time("master_timeout", default)?;
        self.time("cluster_manager_timeout", time)
    }

    /// The body as JSON; without one an empty object.
    fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::new(400, "parsing_exception", error.to_string()))
    }
}

fn document_read(id: &str, read: io::Result<Option<Vec<u8>>>) -> Answer {
    let content = match read {
        Ok(Some(content)) => content,
        Ok(None) => return Answer::json(404, json!({"_id": id, "found": false})),
        Err(error) => return failure(500, &format!("cannot read the document: {error}")),
    };
    match serde_json::from_slice::<Value>(&content) {
        Ok(source) => Answer::json(200, json!({"_id": id, "found": true, "_source": source})),
        Err(error) => failure(500, &format!("the document on disk is damaged: {error}")),
    }
}

fn failure(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"error": message, "status": status}))
}

fn unknown(request: &Request, path: &[&str]) -> Answer {
    let Request { method, path: uri, .. } = request;
    // A path of one segment could be an index, and there is no such index.
    let status = if path.len() == 1 { 404 } else { 400 };
    let error = format!("no handler found for uri [{uri}] and method [{method}]");
    Answer::json(status, json!({"error": error}))
}

fn wrong_method(request: &Request, allowed: &str) -> Answer {
    let Request { method, path, .. } = request;
    let error = format!(
        "Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [{allowed}]"
    );
    failure(405, &error)
}

// `filter_path`: selects parts of an answer.

/// The parts of `body` that one of the comma-separated patterns selects. `*` stands for any part of
/// a name, `**` for any names; a `-` in front excludes.
fn filtered(body: &Value, patterns: &str) -> Value {
    let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
        patterns.split(',').filter(|it| !it.is_empty()).partition(|it| it.starts_with('-'));
    let split = |pattern: &&'_ str| -> Vec<String> {
        pattern.trim_start_matches('-').split('.').map(str::to_owned).collect()
    };
    let wanted: Vec<_> = wanted.iter().map(split).collect();
    let unwanted: Vec<_> = unwanted.iter().map(split).collect();
    let kept = if wanted.is_empty() { Some(body.clone()) } else { only(body, &wanted) };
    kept.and_then(|body| without(body, &unwanted)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The rest of each pattern below `name`.
fn below(patterns: &[Vec<String>], name: &str) -> Vec<Vec<String>> {
    let mut rest = Vec::new();
    for pattern in patterns {
        match pattern.split_first() {
            Some((first, tail)) if first == "**" => {
                rest.push(pattern.clone());
                rest.extend(below(&[tail.to_vec()], name));
            }
            Some((first, tail)) if matches(first, name) => rest.push(tail.to_vec()),
            _ => {}
        }
    }
    rest
}

fn only(value: &Value, patterns: &[Vec<String>]) -> Option<Value> {
    if patterns.iter().any(Vec::is_empty) {
        return Some(value.clone());
    }
    match value {
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, field)| {
                    let rest = below(patterns, name);
                    Some((name.clone(), only(field, &rest).filter(|_| !rest.is_empty())?))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(|item| only(item, patterns)).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn without(value: Value, patterns: &[Vec<String>]) -> Option<Value> {
    if patterns.iter().any(Vec::is_empty) {
        return None;
    }
    Some(match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, field)| {
                let rest = below(patterns, &name);
                Some((name, without(field, &rest)?))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().filter_map(|item| without(item, patterns)).collect())
        }
        leaf => leaf,
    })
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches(after, &rest[at..]))
        }),
    }
}
