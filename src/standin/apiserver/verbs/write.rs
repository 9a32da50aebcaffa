//! POST, PUT, the second half of PATCH; and the body of a request as an object of the kind that the
//! path names.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{State, Writing, Written, may_go};
use crate::apiserver::answer::Target;
use crate::apiserver::catalog::Resource;
use crate::apiserver::failure::{Cause, Failure};
use crate::apiserver::kinds::{self, Part};
use crate::apiserver::object::{is_deleting, meta, meta_mut, suffix, through, timestamp, uid};
use crate::apiserver::schema;
use crate::apiserver::store::Key;

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

// PUT, and the second half of PATCH.

impl State {
    /// Replaces an object, or the part of it that `part` names.
    pub(crate) fn replace(
        &mut self,
        target: &Target,
        object: Value,
        part: Part,
        writing: Writing,
    ) -> Result<Written, Failure> {
        let exists = self.store.get(&target.key()).is_some();
        if !exists && part == Part::Main && target.resource.create_on_update() {
            check_address(target, &object)?;
            return self.create(target, object, writing);
        }
        self.update(target, object, part, writing)
    }

    /// The same for an object that must exist.
    pub(super) fn update(
        &mut self,
        target: &Target,
        object: Value,
        part: Part,
        writing: Writing,
    ) -> Result<Written, Failure> {
        let resource = &target.resource;
        check_address(target, &object)?;
        let mut new = Self::decode(resource, object, writing.strict)?;
        let key = target.key();
        let Some(old) = self.store.get(&key).map(Arc::clone) else {
            return Err(Failure::not_found(resource, &key.name));
        };
        meta_mut(&mut new).remove("managedFields");
        check_preconditions(resource, &old, &new, writing.is_patch)?;
        kinds::prepare_update(resource, &old, &mut new, part);
        // A size that is written through its own door is no change that a pod refuses.
        let mut before = Value::clone(&old);
        if part == Part::Resize {
            before["spec"] = new["spec"].clone();
        }
        Self::check(resource, Some(&before), &new)?;
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if new == *old || writing.dry_run {
            return Ok(Written { created: false, object: new.into() });
        }
        let object = if may_go(&new) { self.remove(key, new) } else { self.put(key, new) };
        Ok(Written { created: false, object })
    }
}

/// The body must be about the same object as the path.
fn check_address(target: &Target, object: &Value) -> Result<(), Failure> {
    let name = meta(object, "name");
    if name.is_empty() {
        let message = format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name()
        );
        return Err(Failure::bad_request(message));
    }
    if name != target.name() {
        let message = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name()
        );
        return Err(Failure::bad_request(message));
    }
    let namespace = meta(object, "namespace");
    let expected = target.namespace.as_deref().unwrap_or_default();
    if !namespace.is_empty() && namespace != expected {
        let message = "the namespace of the provided object does not match the namespace sent on \
                       the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// The version and uid that the writer has read.
fn check_preconditions(
    resource: &Resource,
    old: &Value,
    new: &Value,
    is_patch: bool,
) -> Result<(), Failure> {
    let name = meta(old, "name");
    let (uid, expected) = (meta(new, "uid"), meta(old, "uid"));
    if !uid.is_empty() && uid != expected {
        if is_patch {
            let cause = Cause::invalid("metadata.uid", &json!(uid), "field is immutable");
            return Err(Failure::invalid(resource, name, &[cause]));
        }
        let reason = format!(
            "StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: UID \
             in precondition: {uid}, UID in object meta: {expected}"
        );
        return Err(Failure::conflict(resource, name, &reason));
    }
    let version = meta(new, "resourceVersion");
    if version.is_empty() || version == "0" {
        if resource.unconditional_update() {
            return Ok(());
        }
        let note = "must be specified for an update";
        let cause = Cause::invalid("metadata.resourceVersion", &json!(0), note);
        let (group, kind) = (&resource.group, &resource.plural);
        return Err(Failure::invalid_kind(group, kind, name, &[cause]));
    }
    if version.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Failure::unforeseen(message));
    }
    if version == meta(old, "resourceVersion") {
        Ok(())
    } else {
        Err(Failure::modified(resource, name))
    }
}

impl State {
    /// The object in the stored form: of this kind, without unknown fields.
    pub(super) fn decode(
        resource: &Resource,
        mut object: Value,
        strict: bool,
    ) -> Result<Value, Failure> {
        check_kind(resource, &object)?;
        object["kind"] = json!(resource.kind);
        object["apiVersion"] = json!(resource.api_version());
        let unfit = |error: String| {
            let (kind, version) = (&resource.kind, &resource.version);
            let message =
                format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}");
            Failure::bad_request(message)
        };
        let given = strict.then(|| object.clone());
        let mut unknown = Vec::new();
        if let Some(schema) = resource.schema() {
            let metadata = object["metadata"].take();
            object["metadata"] = through::<Metadata>(metadata).map_err(unfit)?;
            if let Some(mut given) = given {
                unknown = schema::prune(schema, &mut given);
            }
        } else {
            object = resource.decode(object).map_err(unfit)?;
            // For events, fields change their names here.
            if let Some(given) = given.filter(|_| resource.storage != "events") {
                lost(&given, &object, "", &mut unknown);
            }
        }
        match unknown.as_slice() {
            [] => Ok(object),
            unknown => {
                let each: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
                Err(unfit(format!("strict decoding error: {}", each.join(", "))))
            }
        }
    }
}

type Metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

fn check_kind(resource: &Resource, object: &Value) -> Result<(), Failure> {
    let custom = resource.schema().is_some();
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !object.is_object() || custom && kind.is_empty() {
        let message = format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
            resource.kind
        );
        return Err(Failure::bad_request(message));
    }
    let expected = resource.api_version();
    if !version.is_empty() && version != expected {
        let message = format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        );
        return Err(Failure::bad_request(message));
    }
    if custom && kind != resource.kind {
        let note = format!("must be {}", resource.kind);
        let cause = Cause::invalid("kind", &json!(kind), &note);
        return Err(Failure::invalid_kind(&resource.group, kind, meta(object, "name"), &[cause]));
    }
    if !kind.is_empty() && kind != resource.kind {
        let message = format!(
            "{kind} in version {expected:?} cannot be handled as a {}: converting (v1.{kind}) to \
             (core.{}): unknown conversion",
            resource.kind, resource.kind
        );
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// The fields of `given` that are not in `kept`.
fn lost(given: &Value, kept: &Value, path: &str, unknown: &mut Vec<String>) {
    match given {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => lost(value, kept, &path, unknown),
                    None => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                lost(item, &kept[index], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
