//! PUT, and the second half of PATCH.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::call::Target;
use super::super::catalog::Resource;
use super::super::cause::Cause;
use super::super::failure::Failure;
use super::super::kinds::{self, Part};
use super::super::object::{meta, meta_mut};
use super::{State, Writing, Written, may_go};

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
