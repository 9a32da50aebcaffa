//! POST.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::call::Target;
use super::super::failure::Failure;
use super::super::kinds;
use super::super::object::{is_deleting, meta, meta_mut, suffix, timestamp, uid};
use super::super::store::Key;
use super::{State, Writing, Written};

impl State {
    /// Stores a new object.
    pub(crate) fn create(
        &mut self,
        target: &Target,
        object: Value,
        writing: Writing,
    ) -> Result<Written, Failure> {
        let resource = &target.resource;
        let mut object = Self::decode(resource, object, writing.strict)?;
        meta_mut(&mut object);
        place(target, &mut object)?;
        if !meta(&object, "resourceVersion").is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::unforeseen(message));
        }
        let prefix = meta(&object, "generateName").to_owned();
        if meta(&object, "name").is_empty() && !prefix.is_empty() {
            object["metadata"]["name"] = json!(prefix + &suffix());
        }
        let metadata = meta_mut(&mut object);
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"]
        {
            metadata.remove(field);
        }
        metadata.insert("uid".to_owned(), json!(uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(timestamp(Duration::ZERO)));
        let name = meta(&object, "name").to_owned();
        if let Some(namespace) = &target.namespace {
            self.admit(target, namespace, &name)?;
        }
        kinds::prepare_create(resource, &mut object);
        Self::check(resource, None, &object)?;
        let key = Key { name: name.clone(), ..target.key() };
        if self.store.get(&key).is_some() {
            return Err(Failure::already_exists(resource, &name));
        }
        let object = if writing.dry_run { object.into() } else { self.put(key, object) };
        Ok(Written { created: true, object })
    }

    /// Nothing is created in a namespace that does not exist, or is being deleted.
    fn admit(&self, target: &Target, namespace: &str, name: &str) -> Result<(), Failure> {
        let Some(namespaces) = self.catalog.find("", "v1", "namespaces") else { return Ok(()) };
        let key = Key {
            storage: namespaces.storage.clone(),
            namespace: String::new(),
            name: namespace.to_owned(),
        };
        match self.store.get(&key) {
            None => Err(Failure::not_found(namespaces, namespace)),
            Some(found) if is_deleting(found) => {
                let reason = format!(
                    "unable to create new content in namespace {namespace} because it is being \
                     terminated"
                );
                Err(Failure::forbidden(&target.resource, name, &reason))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Puts the object into the namespace of the path, which it may already name.
fn place(target: &Target, object: &mut Value) -> Result<(), Failure> {
    let given = meta(object, "namespace").to_owned();
    match &target.namespace {
        Some(namespace) if given.is_empty() => object["metadata"]["namespace"] = json!(namespace),
        Some(namespace) if given != *namespace => {
            let message = "the namespace of the provided object does not match the namespace sent \
                           on the request";
            return Err(Failure::bad_request(message));
        }
        Some(_) => {}
        None => drop(meta_mut(object).remove("namespace")),
    }
    Ok(())
}
