//! Indices: create, show, change, delete, flush.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::settings::{changes, number, shown};
use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{Changes, Command, Failure, Index, Shard, State, time_value};
use crate::engine::data;

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
    pub(super) fn make_index(
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
