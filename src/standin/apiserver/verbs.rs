//! Operations on objects. Each is one step on the state, so requests do not mix.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use super::answer::{Call, Target};
use super::catalog::{Catalog, Resource};
use super::failure::{Cause, Failure};
use super::kinds;
use super::object::{Shape, finalizers, grace, is_deleting, meta, timestamp};
use super::selector::Selector;
use super::store::{Key, Store};

mod patch;
mod write;

pub(super) use patch::Patch;

/// All objects and kinds.
#[derive(Debug)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) catalog: Catalog,
}

/// Options of a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing {
    dry_run: bool,
    /// Unknown fields are refused, not dropped.
    strict: bool,
    is_patch: bool,
}

/// The result of a write.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) created: bool,
    pub(super) object: Arc<Value>,
}

impl Writing {
    /// Reads the query. `options` is the kind of options that this verb takes.
    pub(super) fn parse(call: &Call, options: &str) -> Result<Self, Failure> {
        let dry_run = match call.parameter("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                let cause = Cause::unsupported("dryRun", &json!([other]), &[json!("All")]);
                return Err(Failure::invalid_options(options, cause));
            }
        };
        let strict = call.parameter("fieldValidation") == Some("Strict");
        Ok(Self { dry_run, strict, is_patch: call.method == Method::PATCH })
    }

    /// Reads the body of a deletion; its query is ignored then.
    pub(super) fn of_deletion(options: &Value) -> Self {
        let dry_run = options["dryRun"].as_array().is_some_and(|all| all.contains(&json!("All")));
        Self { dry_run, strict: false, is_patch: false }
    }
}

impl State {
    /// A state with the namespaces that every cluster has.
    pub(super) fn new() -> Self {
        let mut state = Self { store: Store::new(), catalog: Catalog::new() };
        let resource = state.catalog.find("", "v1", "namespaces").cloned();
        for name in ["default", "kube-system", "kube-public"] {
            let Some(resource) = resource.clone() else { continue };
            let target = Target { resource, namespace: None, name: None, subresource: None };
            let writing = Writing { dry_run: false, strict: false, is_patch: false };
            let made = state.create(&target, json!({"metadata": {"name": name}}), writing);
            debug_assert!(made.is_ok(), "{made:?}");
        }
        // Like a restart of the real server, which then does not know earlier versions.
        state.store.compact();
        state
    }

    /// Writes the object, and what follows from it.
    fn put(&mut self, key: Key, object: Value) -> Arc<Value> {
        let object = self.store.put(key.clone(), object);
        if key.storage == "customresourcedefinitions" {
            self.catalog.declare(&key.name, Some(&object));
        }
        object
    }

    /// Removes the object, and the objects that depend on it.
    fn remove(&mut self, key: Key, last: Value) -> Arc<Value> {
        let last = self.store.remove(key.clone(), last);
        match key.storage.as_str() {
            "customresourcedefinitions" => {
                let orphans: Vec<(Key, Arc<Value>)> = self
                    .store
                    .list(&key.name, None)
                    .map(|(key, object)| (key.clone(), Arc::clone(object)))
                    .collect();
                for (key, object) in orphans {
                    self.store.remove(key, Value::clone(&object));
                }
                self.catalog.declare(&key.name, None);
            }
            _ if !key.namespace.is_empty() => self.end_namespace(&key.namespace),
            _ => {}
        }
        last
    }

    /// Removes a namespace that is being deleted and is empty, as the namespace controller does.
    fn end_namespace(&mut self, name: &str) {
        let key = Key {
            storage: "namespaces".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        let Some(namespace) = self.store.get(&key).map(|object| Value::clone(object)) else {
            return;
        };
        let storages = self.catalog.namespaced_storages();
        let empty = storages.iter().all(|kind| self.store.list(kind, Some(name)).next().is_none());
        if is_deleting(&namespace) && empty {
            self.store.remove(key, namespace);
        }
    }

    /// Refuses an object that is invalid for its kind.
    fn check(resource: &Resource, old: Option<&Value>, new: &Value) -> Result<(), Failure> {
        let causes = kinds::validate(resource, old, new);
        match causes.as_slice() {
            [] => Ok(()),
            causes => Err(Failure::invalid(resource, meta(new, "name"), causes)),
        }
    }
}

/// Whether no finalizer holds an object that is being deleted.
fn may_go(object: &Value) -> bool {
    is_deleting(object) && finalizers(object).is_empty() && grace(object) == 0
}

// GET of one object and of lists.

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

// DELETE.

/// The result of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is removed.
    Gone(Arc<Value>),
    /// It is marked, and stays until it has no finalizers and its grace period is over.
    Marked(Arc<Value>),
}

impl State {
    /// Deletes an object, or marks it for deletion. `options` are `DeleteOptions`, or null.
    pub(crate) fn delete(
        &mut self,
        target: &Target,
        options: &Value,
        writing: Writing,
    ) -> Result<Deleted, Failure> {
        let (resource, key) = (&target.resource, target.key());
        let Some(object) = self.store.get(&key).map(Arc::clone) else {
            return Err(Failure::not_found(resource, &key.name));
        };
        check_preconditions(resource, &object, &options["preconditions"])?;
        let seconds = match resource.storage.as_str() {
            "pods" => pod_grace(&object, options["gracePeriodSeconds"].as_i64()),
            _ => 0,
        };
        if resource.storage == "namespaces" {
            return Ok(self.delete_namespace(key, &object, writing));
        }
        if finalizers(&object).is_empty() && seconds == 0 {
            return Ok(Deleted::Gone(if writing.dry_run {
                object
            } else {
                self.remove(key, Value::clone(&object))
            }));
        }
        let marked = mark(&object, seconds);
        Ok(Deleted::Marked(if writing.dry_run || marked == *object {
            object
        } else {
            self.put(key, marked)
        }))
    }

    /// First its contents, as the namespace controller does.
    fn delete_namespace(&mut self, key: Key, object: &Value, writing: Writing) -> Deleted {
        let mut marked = mark(object, 0);
        marked["status"]["phase"] = json!("Terminating");
        if writing.dry_run {
            return Deleted::Marked(marked.into());
        }
        let name = key.name.clone();
        let marked = self.put(key, marked);
        for storage in self.catalog.namespaced_storages() {
            let inside: Vec<(Key, Arc<Value>)> = self
                .store
                .list(&storage, Some(&name))
                .map(|(key, object)| (key.clone(), Arc::clone(object)))
                .collect();
            for (key, object) in inside {
                if finalizers(&object).is_empty() {
                    drop(self.remove(key, Value::clone(&object)))
                } else {
                    drop(self.put(key, mark(&object, 0)))
                }
            }
        }
        self.end_namespace(&name);
        Deleted::Marked(marked)
    }
}

/// The uid and version that the object must still have.
fn check_preconditions(
    resource: &Resource,
    object: &Value,
    conditions: &Value,
) -> Result<(), Failure> {
    for (field, word, likely) in [
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ] {
        let actual = meta(object, field);
        if let Some(wanted) = conditions[field].as_str().filter(|wanted| *wanted != actual) {
            let reason = format!(
                "the {word} in the precondition ({wanted}) does not match the {word} in record \
                 ({actual}). The object might have been {likely}"
            );
            return Err(Failure::precondition(resource, meta(object, "name"), &reason));
        }
    }
    Ok(())
}

/// Grace period of a pod in seconds: 0 without a kubelet that has to stop it.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let bound = !pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let over =
        ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or_default());
    if !bound || over {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let asked = asked.unwrap_or(own);
    // A second request can only shorten it.
    if is_deleting(pod) { asked.min(grace(pod)) } else { asked }
}

fn mark(object: &Value, seconds: i64) -> Value {
    let mut marked = object.clone();
    if is_deleting(object) && grace(object) <= seconds {
        return marked;
    }
    let ahead = Duration::from_secs(seconds.unsigned_abs());
    marked["metadata"]["deletionTimestamp"] = json!(timestamp(ahead));
    marked["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
    let generation = object["metadata"]["generation"].as_i64();
    if let Some(generation) = generation.filter(|_| !is_deleting(object)) {
        marked["metadata"]["generation"] = json!(generation + 1);
    }
    marked
}
