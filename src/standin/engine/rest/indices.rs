//! Indices: create, show, change, delete, flush. Documents in them: write, read, count, search.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::state::{changes, number, shown};
use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{
    Changes, Command, Document, Failure, Index, Shard, State, time_value,
};
use crate::engine::data::{self, is_document_id};

/// The real engines wait this long for an index's primaries, and for those they flush.
const ACTIVE: Duration = Duration::from_secs(60);
/// How long a copy waits for its node to return, by default.
const DELAYED: u64 = 60_000;
const DELAYED_TIMEOUT: &str = "unassigned.node_left.delayed_timeout";

impl Node {
    pub(super) fn create_index(&self, request: &Request, name: &str) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let settings = index_changes(body.get("settings").unwrap_or(&Value::Null));
        let timeout = request.time("timeout", DEFAULT_TIMEOUT)?;
        let deadline = Instant::now() + timeout;
        let mut active = self.make_index(name, &settings, timeout)?;
        if request.query.get("wait_for_active_shards").is_some_and(|number| number == "all") {
            let all = |shard: &Shard| shard.started().count() == shard.copies.len();
            let started = self.cluster.wait(deadline, |state| {
                state.indices.get(name)?.shards.iter().all(all).then_some(())
            });
            active = started.is_some();
        }
        Ok(Answer::json(
            200,
            json!({"acknowledged": true, "shards_acknowledged": active, "index": name}),
        ))
    }

    /// Creates an index; returns whether its primaries were started in time.
    fn make_index(
        &self,
        name: &str,
        settings: &Changes,
        timeout: Duration,
    ) -> Result<bool, Failure> {
        let lower = name.to_lowercase() == name;
        if !lower || name.starts_with(['_', '-', '+', '.']) {
            let reason =
                if lower { "must not start with '_', '-', or '+'" } else { "must be lowercase" };
            let reason = format!("Invalid index name [{name}], {reason}");
            return Err(Failure::new(400, "invalid_index_name_exception", reason));
        }
        self.cluster.command(Command::CreateIndex {
            name: name.to_owned(),
            uuid: data::random_id().map_err(|error| Failure::disk(&error))?,
            shards: number(settings, "number_of_shards")?.unwrap_or(1).clamp(1, 1024),
            replicas: number(settings, "number_of_replicas")?.unwrap_or(1),
            delayed_ms: delayed(settings)?.unwrap_or(DELAYED),
        })?;
        let started = |index: &Index| index.shards.iter().all(|it| it.primary_node().is_some());
        let deadline = Instant::now() + timeout;
        let active =
            self.cluster.wait(deadline, |state| started(state.indices.get(name)?).then_some(()));
        Ok(active.is_some())
    }

    pub(super) fn delete_index(&self, name: &str) -> Answered {
        let done = self.cluster.command(Command::DeleteIndex { name: name.to_owned() })?;
        Ok(Answer::json(200, done))
    }

    pub(super) fn close_index(&self, name: &str) -> Answered {
        let done = self.cluster.command(Command::CloseIndex { name: name.to_owned() })?;
        Ok(Answer::json(200, done))
    }

    pub(super) fn open_index(&self, name: &str) -> Answered {
        let done = self.cluster.command(Command::OpenIndex { name: name.to_owned() })?;
        Ok(Answer::json(200, done))
    }

    pub(super) fn index(&self, request: &Request, name: &str) -> Answered {
        let state = self.state(request)?;
        let index = state.indices.get(name).ok_or_else(|| Failure::no_such_index(name))?;
        let body = json!({
            "aliases": {}, "mappings": {}, "settings": {"index": settings(name, index)},
        });
        Ok(Answer::json(200, json!({name: body})))
    }

    /// The settings of all indices, or of one.
    pub(super) fn index_settings(&self, request: &Request, only: Option<&str>) -> Answered {
        let state = self.state(request)?;
        if let Some(name) = only.filter(|name| !state.indices.contains_key(*name)) {
            return Err(Failure::no_such_index(name));
        }
        let indices = state.indices.iter().filter(|(name, _)| only.is_none_or(|it| it == *name));
        let settings = indices.map(|(name, index)| {
            let flat = flat_settings(name, index);
            let flat: BTreeMap<_, _> =
                flat.into_iter().map(|(key, value)| (format!("index.{key}"), value)).collect();
            (name.clone(), json!({"settings": shown(&flat, request.flag("flat_settings"))}))
        });
        Ok(Answer::json(200, settings.collect::<Map<_, _>>().into()))
    }

    pub(super) fn put_index_settings(&self, request: &Request, name: &str) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let settings = index_changes(body.get("settings").unwrap_or(&body));
        let done = self.cluster.command(Command::PutIndexSettings {
            name: name.to_owned(),
            replicas: number(&settings, "number_of_replicas")?,
            delayed_ms: delayed(&settings)?,
        })?;
        Ok(Answer::json(200, done))
    }

    /// Waits, as the real engines do, for primaries that are not there; everything is on disk.
    pub(super) fn flush(&self, request: &Request, only: Option<&str>) -> Answered {
        self.check_index(only)?;
        let limit = request.time("timeout", ACTIVE)?;
        let is_started = |state: &State| {
            copies(state, only).all(|shard| shard.primary_node().is_some()).then_some(())
        };
        // Without a master no shard is started; the real engines wait for it as well.
        let waited = self.cluster.wait(Instant::now() + limit, is_started);
        let mut answer = counts(&self.cluster.local_state(), only);
        if waited.is_none() {
            let state = self.cluster.local_state();
            let missing = copies(&state, only).filter(|shard| shard.primary_node().is_none());
            answer["_shards"]["failed"] =
                json!(missing.map(|shard| shard.copies.len()).sum::<usize>());
        }
        Ok(Answer::json(200, answer))
    }

    /// All documents can be found already.
    pub(super) fn refresh(&self, _: &Request, name: &str) -> Answered {
        self.check_index(Some(name))?;
        Ok(Answer::json(200, counts(&self.cluster.local_state(), Some(name))))
    }

    fn check_index(&self, name: Option<&str>) -> Result<(), Failure> {
        let state = self.cluster.local_state();
        match name.filter(|name| !state.indices.contains_key(*name)) {
            Some(name) => Err(Failure::no_such_index(name)),
            None => Ok(()),
        }
    }
}

fn copies<'a>(state: &'a State, only: Option<&'a str>) -> impl Iterator<Item = &'a Shard> {
    let indices = state.indices.iter().filter(move |(name, _)| only.is_none_or(|it| it == *name));
    indices.flat_map(|(_, index)| &index.shards)
}

fn counts(state: &State, only: Option<&str>) -> Value {
    let total: usize = copies(state, only).map(|shard| shard.copies.len()).sum();
    let successful: usize = copies(state, only).map(|shard| shard.started().count()).sum();
    json!({"_shards": {"total": total, "successful": successful, "failed": 0}})
}

/// Settings of an index, without `index.` in front.
fn index_changes(body: &Value) -> Changes {
    let plain = |key: String| key.strip_prefix("index.").map_or(key.clone(), str::to_owned);
    changes(body).into_iter().map(|(key, value)| (plain(key), value)).collect()
}

fn delayed(settings: &Changes) -> Result<Option<u64>, Failure> {
    let Some(value) = settings.get(DELAYED_TIMEOUT) else { return Ok(None) };
    let Some(text) = value else { return Ok(Some(DELAYED)) };
    let reason =
        || format!("failed to parse setting [index.{DELAYED_TIMEOUT}] with value [{text}]");
    time_value(text)
        .map(Some)
        .ok_or_else(|| Failure::new(400, "illegal_argument_exception", reason()))
}

fn flat_settings(name: &str, index: &Index) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([
        ("creation_date".to_owned(), index.created_ms.to_string()),
        ("number_of_replicas".to_owned(), index.replicas().to_string()),
        ("number_of_shards".to_owned(), index.shards.len().to_string()),
        ("provided_name".to_owned(), name.to_owned()),
        ("uuid".to_owned(), index.uuid.clone()),
    ]);
    if index.delayed_timeout_ms != DELAYED {
        settings.insert(DELAYED_TIMEOUT.to_owned(), format!("{}ms", index.delayed_timeout_ms));
    }
    settings
}

/// The settings of an index, nested.
pub(super) fn settings(name: &str, index: &Index) -> Value {
    shown(&flat_settings(name, index), false)
}

/// How long a write waits for its primary if the request does not set it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How many documents a search returns if the request does not set it.
const HITS: usize = 10;

impl Node {
    pub(super) fn write_document(
        &self,
        request: &Request,
        index: &str,
        id: Option<&str>,
    ) -> Answered {
        let id = match id {
            Some(id) => id.to_owned(),
            None => data::random_id().map_err(|error| Failure::disk(&error))?,
        };
        if !is_document_id(&id) {
            let reason = "the stand-in's document ids are made of letters, digits, - and _";
            return Err(Failure::new(400, "illegal_argument_exception", reason));
        }
        let source: Value = serde_json::from_slice(&request.body).map_err(|error| {
            Failure::new(400, "mapper_parsing_exception", format!("failed to parse: {error}"))
        })?;
        let deadline = Instant::now() + request.time("timeout", WRITE_TIMEOUT)?;
        let mut written = self.cluster.write(index, &id, &source, deadline);
        if written.as_ref().is_err_and(|failure| failure.status == 404) {
            match self.make_index(index, &Changes::new(), WRITE_TIMEOUT) {
                // Another request has created it in the meantime.
                Err(failure) if failure.kind == "resource_already_exists_exception" => {}
                made => drop(made?),
            }
            written = self.cluster.write(index, &id, &source, deadline);
        }
        let written = written?;
        let is_new = written.document.version == 1;
        let mut body = located(index, &written.document);
        body["result"] = json!(if is_new { "created" } else { "updated" });
        let (total, successful) = written.copies;
        body["_shards"] = json!({"total": total, "successful": successful, "failed": 0});
        if request.flag("refresh") && request.query["refresh"] != "wait_for" {
            body["forced_refresh"] = json!(true);
        }
        Ok(Answer::json(if is_new { 201 } else { 200 }, body))
    }

    pub(super) fn read_document(&self, index: &str, id: &str) -> Answered {
        Ok(match self.cluster.read(index, id)? {
            Some(document) => {
                let mut body = located(index, &document);
                body["found"] = json!(true);
                body["_source"] = document.source;
                Answer::json(200, body)
            }
            None => Answer::json(404, json!({"_index": index, "_id": id, "found": false})),
        })
    }

    pub(super) fn count(&self, request: &Request, index: &str) -> Answered {
        only_match_all(&request.json()?)?;
        let (count, _, shards) = self.found(index, 0)?;
        Ok(Answer::json(200, json!({"count": count, "_shards": shards})))
    }

    pub(super) fn search(&self, request: &Request, index: &str) -> Answered {
        let body = request.json()?;
        only_match_all(&body)?;
        let asked = body.get("size").and_then(Value::as_u64).map(|size| size.to_string());
        let size = request.query.get("size").or(asked.as_ref());
        let size = size.and_then(|size| size.parse().ok()).unwrap_or(HITS);
        let began = Instant::now();
        let (count, documents, shards) = self.found(index, size)?;
        let hits: Vec<Value> = (documents.into_iter().take(size))
            .map(|document| {
                let Document { id, source, .. } = document;
                json!({"_index": index, "_id": id, "_score": 1.0, "_source": source})
            })
            .collect();
        let score = if hits.is_empty() { json!(null) } else { json!(1.0) };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let body = json!({
            "took": took,
            "timed_out": false,
            "_shards": shards,
            "hits": {
                "total": {"value": count, "relation": "eq"}, "max_score": score, "hits": hits,
            },
        });
        Ok(Answer::json(200, body))
    }

    /// The number of documents, some of them, and the number of shards that answered.
    fn found(&self, index: &str, most: usize) -> Result<(usize, Vec<Document>, Value), Failure> {
        let shards = self.cluster.list(index, most)?;
        let total = shards.len();
        let found: Vec<_> = shards.into_iter().filter_map(Result::ok).collect();
        if found.is_empty() {
            let kind = "search_phase_execution_exception";
            return Err(Failure::new(503, kind, "all shards failed"));
        }
        let successful = found.len();
        let count = found.iter().map(|(count, _)| count).sum();
        let documents = found.into_iter().flat_map(|(_, documents)| documents).collect();
        let shards = json!({
            "total": total, "successful": successful, "skipped": 0, "failed": total - successful,
        });
        Ok((count, documents, shards))
    }
}

fn located(index: &str, document: &Document) -> Value {
    json!({
        "_index": index,
        "_id": document.id,
        "_version": document.version,
        "_seq_no": document.seq_no,
        "_primary_term": document.primary_term,
    })
}

fn only_match_all(body: &Value) -> Result<(), Failure> {
    match body.get("query") {
        None => Ok(()),
        Some(query) if query.get("match_all").is_some() => Ok(()),
        Some(_) => {
            let reason = "the stand-in answers no query but match_all";
            Err(Failure::new(400, "parsing_exception", reason))
        }
    }
}
