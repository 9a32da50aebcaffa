//! GET of one object and of lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::call::{Call, Target};
use super::super::cause::Cause;
use super::super::failure::Failure;
use super::super::selector::Selector;
use super::super::shape::Shape;
use super::super::store::Key;
use super::State;

/// The requested part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    limit: Option<u64>,
    /// The version of the first page, and the last key of the page before.
    after: Option<(u64, Key)>,
    version: Option<u64>,
    exact: bool,
}

impl Page {
    pub(crate) fn parse(call: &Call) -> Result<Self, Failure> {
        let limit = call.number("limit")?.filter(|limit| *limit > 0);
        let version = call.number("resourceVersion")?.filter(|version| *version > 0);
        let matching = call.parameter("resourceVersionMatch");
        let exact = match (matching, version) {
            (None, _) => limit.is_some(),
            (Some("NotOlderThan"), _) if call.parameter("resourceVersion").is_some() => false,
            (Some("Exact"), Some(_)) => true,
            (Some("Exact" | "NotOlderThan"), _) => {
                let note = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                let cause = Cause::forbidden("resourceVersionMatch", note);
                return Err(Failure::invalid_options("ListOptions", cause));
            }
            (Some(other), _) => {
                let supported = ["Exact", "NotOlderThan", ""].map(|word| json!(word));
                let cause = Cause::unsupported("resourceVersionMatch", &json!(other), &supported);
                return Err(Failure::invalid_options("ListOptions", cause));
            }
        };
        let after = call.parameter("continue").map(position).transpose()?;
        Ok(Self { limit, after, version, exact })
    }
}

/// The content of a `continue` token: `version/namespace/name`, and the storage for safety.
fn position(token: &str) -> Result<(u64, Key), Failure> {
    let bad = || Failure::bad_request("invalid continue token: it was not made here");
    let mut parts = token.splitn(4, '/').map(str::to_owned);
    let version = parts.next().and_then(|version| version.parse().ok()).ok_or_else(bad)?;
    let (storage, namespace, name) = (parts.next(), parts.next(), parts.next());
    let (Some(storage), Some(namespace), Some(name)) = (storage, namespace, name) else {
        return Err(bad());
    };
    Ok((version, Key { storage, namespace, name }))
}

impl State {
    /// One object, as stored.
    pub(crate) fn get(&self, target: &Target) -> Result<Arc<Value>, Failure> {
        let key = target.key();
        let found = self.store.get(&key).cloned();
        found.ok_or_else(|| Failure::not_found(&target.resource, &key.name))
    }

    /// A list, in the requested form.
    pub(crate) fn list(
        &self,
        target: &Target,
        selector: &Selector,
        page: &Page,
        shape: Shape,
    ) -> Result<Value, Failure> {
        let (version, objects) = self.snapshot(target, page)?;
        let mut selected = objects.iter().filter(|(_, object)| selector.matches(object));
        let mut items: Vec<(&Key, &Value)> = Vec::new();
        let limit = page.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let start = page.after.as_ref().map(|(_, key)| key);
        for (key, object) in selected.by_ref() {
            if start.is_some_and(|start| key <= start) {
                continue;
            }
            items.push((key, object));
            if items.len() == limit {
                break;
            }
        }
        let remaining = selected.count();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if let (Some((last, _)), true) = (items.last(), remaining > 0) {
            let token = format!("{version}/{}/{}/{}", last.storage, last.namespace, last.name);
            metadata["continue"] = json!(token);
            if selector.is_everything() {
                metadata["remainingItemCount"] = json!(remaining);
            }
        }
        let items: Vec<&Value> = items.into_iter().map(|(_, object)| object).collect();
        Ok(shape.list(&target.resource, metadata, &items))
    }

    /// The objects at the requested version.
    fn snapshot(
        &self,
        target: &Target,
        page: &Page,
    ) -> Result<(u64, BTreeMap<Key, Arc<Value>>), Failure> {
        let current = self.store.version();
        let wanted = match (&page.after, page.version) {
            (Some((version, _)), _) => *version,
            (None, Some(version)) if version > current => {
                return Err(Failure::too_large_version(version, current));
            }
            (None, Some(version)) if page.exact => version,
            (None, _) => current,
        };
        if wanted < self.store.compacted() {
            return Err(Failure::expired(match page.after {
                Some(_) => {
                    "The provided continue parameter is too old to display a consistent list \
                     result. You must start a new list without the continue parameter."
                }
                None => "The resourceVersion for the provided list is too old.",
            }));
        }
        let (storage, namespace) = (&target.resource.storage, target.namespace.as_deref());
        Ok((wanted, self.store.list_at(storage, namespace, wanted)))
    }
}
