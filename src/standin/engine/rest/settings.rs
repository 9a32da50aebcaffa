//! `/_cluster/settings`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::{Changes, Command, Failure};

impl Node {
    pub(super) fn settings(&self, request: &Request) -> Answered {
        let state = self.state(request)?;
        let show = |settings| shown(settings, request.flag("flat_settings"));
        let mut body = json!({
            "persistent": show(&state.persistent),
            "transient": show(&state.transient),
        });
        if request.flag("include_defaults") {
            let key = crate::engine::cluster::ALLOCATION.to_owned();
            let defaults = BTreeMap::from([(key, self.config.allocation.clone())]);
            body["defaults"] = show(&defaults);
        }
        Ok(Answer::json(200, body))
    }

    pub(super) fn put_settings(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let body = request.json()?;
        let changes = |scope: &str| changes(body.get(scope).unwrap_or(&Value::Null));
        let (persistent, transient) = (changes("persistent"), changes("transient"));
        let set = |changes: &Changes| -> BTreeMap<String, String> {
            let set = changes.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
            set.collect()
        };
        let flat = request.flag("flat_settings");
        let answer = json!({
            "acknowledged": true,
            "persistent": shown(&set(&persistent), flat),
            "transient": shown(&set(&transient), flat),
        });
        self.cluster.command(Command::PutSettings { persistent, transient })?;
        Ok(Answer::json(200, answer))
    }
}

/// Settings as a flat object, or as nested ones.
pub(super) fn shown(settings: &BTreeMap<String, String>, flat: bool) -> Value {
    let mut shown = json!({});
    for (key, value) in settings {
        let pointer: Vec<&str> = if flat { vec![key] } else { key.split('.').collect() };
        let mut inner = &mut shown;
        for part in pointer {
            // If a setting is also the prefix of another one, it is left out.
            if !inner.is_object() {
                *inner = json!({});
            }
            inner = &mut inner[part];
        }
        *inner = json!(value);
    }
    shown
}

/// The changes in a body of flat or nested settings; `null` removes. Values become strings.
pub(super) fn changes(body: &Value) -> Changes {
    let mut changes = Changes::new();
    flatten("", body, &mut changes);
    changes
}

fn flatten(prefix: &str, value: &Value, changes: &mut Changes) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let set = match value {
            Value::Object(_) => {
                flatten(&key, value, changes);
                continue;
            }
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        changes.insert(key, set);
    }
}

/// A setting of an index that is a number.
pub(super) fn number(changes: &Changes, name: &str) -> Result<Option<usize>, Failure> {
    let Some(Some(text)) = changes.get(name) else { return Ok(None) };
    let reason = || format!("Failed to parse value [{text}] for setting [index.{name}]");
    text.parse().map(Some).map_err(|_| Failure::new(400, "illegal_argument_exception", reason()))
}
