//! DELETE.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::call::Target;
use super::super::catalog::Resource;
use super::super::failure::Failure;
use super::super::object::{finalizers, grace, is_deleting, meta, timestamp};
use super::super::store::Key;
use super::{State, Writing};

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

/// Grace period of a pod in seconds: none if no kubelet has to stop it.
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
