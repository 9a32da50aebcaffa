//! Operations on objects. Each is one step on the state, so requests do not mix.

use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};

use super::call::{Call, Target};
use super::catalog::{Catalog, Resource};
use super::cause::Cause;
use super::failure::Failure;
use super::kinds;
use super::object::{finalizers, grace, is_deleting, meta};
use super::store::{Key, Store};

mod create;
mod decode;
mod delete;
mod patch;
mod read;
mod update;

pub(super) use delete::Deleted;
pub(super) use patch::Patch;
pub(super) use read::Page;

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
