//! What can be done with objects. Everything here is one step on the state: requests do not mix.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{Call, Target};
use super::catalog::{Catalog, Resource};
use super::failure::Failure;
use super::kinds;
use super::object::{finalizers, grace, is_deleting, meta};
use super::schema;
use super::store::{Key, Store};

mod create;
mod delete;
mod patch;
mod read;
mod update;

pub(super) use delete::Deleted;
pub(super) use patch::Patch;
pub(super) use read::Page;

/// All objects and what they can be.
#[derive(Debug)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) catalog: Catalog,
}

/// How a write is meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing {
    dry_run: bool,
    /// Unknown fields are refused and not dropped.
    strict: bool,
}

/// What a write did.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) created: bool,
    pub(super) object: Arc<Value>,
}

impl Writing {
    pub(super) fn parse(call: &Call) -> Result<Self, Failure> {
        let dry_run = match call.parameter("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                let message =
                    format!("dryRun: Unsupported value: {other:?}: supported values: \"All\"");
                return Err(Failure::bad_request(message));
            }
        };
        Ok(Self { dry_run, strict: call.parameter("fieldValidation") == Some("Strict") })
    }
}

impl State {
    /// With the namespaces that every cluster has.
    pub(super) fn new() -> Self {
        let mut state = Self { store: Store::new(), catalog: Catalog::new() };
        let resource = state.catalog.find("", "v1", "namespaces").cloned();
        for name in ["default", "kube-system", "kube-public"] {
            let Some(resource) = resource.clone() else { continue };
            let target = Target { resource, namespace: None, name: None, subresource: None };
            let writing = Writing { dry_run: false, strict: false };
            let made = state.create(&target, json!({"metadata": {"name": name}}), writing);
            debug_assert!(made.is_ok(), "{made:?}");
        }
        // As after a restart of the real server, which knows nothing of earlier versions.
        state.store.compact();
        state
    }

    /// Writes the object and what follows from it.
    fn put(&mut self, key: Key, object: Value) -> Arc<Value> {
        let object = self.store.put(key.clone(), object);
        if key.storage == "customresourcedefinitions" {
            self.catalog.declare(&key.name, Some(&object));
        }
        object
    }

    /// Removes the object and what cannot be without it.
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

    /// Removes a namespace that is to go and is empty, as the namespace controller does.
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

    /// The object as it is stored: of this kind, without what the kind does not have.
    fn decode(resource: &Resource, mut object: Value, strict: bool) -> Result<Value, Failure> {
        if !object.is_object() {
            return Err(Failure::bad_request("the object provided is unrecognized: not an object"));
        }
        let (kind, version) = (json!(resource.kind), json!(resource.api_version()));
        for (field, expected) in [("kind", kind), ("apiVersion", version)] {
            let given = object[field].clone();
            if !given.is_null() && given != expected {
                return Err(Failure::bad_request(format!(
                    "{field} in the data ({given}) does not match the expected {field} ({expected})"
                )));
            }
            object[field] = expected;
        }
        if strict && let Some(schema) = resource.schema() {
            let unknown = schema::prune(schema, &mut object.clone());
            let unknown: Vec<String> =
                unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
            if !unknown.is_empty() {
                let message = format!("strict decoding error: {}", unknown.join(", "));
                return Err(Failure::bad_request(message));
            }
        }
        resource.decode(object).map_err(|error| {
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: {error}",
                resource.kind, resource.version, resource.kind
            );
            Failure::bad_request(message)
        })
    }

    /// Refuses an object that is not as its kind has to be.
    fn check(resource: &Resource, old: Option<&Value>, new: &Value) -> Result<(), Failure> {
        let causes = kinds::validate(resource, old, new);
        match causes.as_slice() {
            [] => Ok(()),
            causes => Err(Failure::invalid(resource, meta(new, "name"), causes)),
        }
    }
}

/// Whether nothing holds an object that is to go.
fn may_go(object: &Value) -> bool {
    is_deleting(object) && finalizers(object).is_empty() && grace(object) == 0
}
