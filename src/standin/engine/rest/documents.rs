//! Documents in indices: write, read, count, search.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Answered, Node, Request};
use crate::engine::cluster::{Changes, Document, Failure};
use crate::engine::data::{self, is_document_id};

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
