//! The operations of JSON patches (RFC 6902). Places are made of keys as they are: they are escaped here
//! (RFC 6901).

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::Value;

/// The place that these keys lead to.
pub(crate) fn place<const N: usize>(keys: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(keys)
}

/// The place of an annotation.
pub(crate) fn annotation(key: &str) -> PointerBuf {
    place(["metadata", "annotations", key])
}

/// The patch is refused unless this is there. A null holds if there is nothing, in a map that exists.
pub(crate) fn test(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Test(TestOperation { path, value: value.into() })
}

/// The patch is refused if the object has another resource version.
pub(crate) fn is_at_version(resource_version: Option<&str>) -> PatchOperation {
    test(place(["metadata", "resourceVersion"]), resource_version)
}

/// The patch is refused if it is another object of the same name.
pub(crate) fn has_uid(uid: Option<&str>) -> PatchOperation {
    test(place(["metadata", "uid"]), uid)
}

/// Sets what may be absent.
pub(crate) fn add(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value: value.into() })
}

/// Sets what is there.
pub(crate) fn replace(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path, value: value.into() })
}

/// Removes what is there.
pub(crate) fn remove(path: PointerBuf) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path })
}

/// All finalizers of the object from now on.
pub(crate) fn set_finalizers(all: &[String]) -> PatchOperation {
    add(place(["metadata", "finalizers"]), all)
}
