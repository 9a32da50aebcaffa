//! The operations of JSON patches (RFC 6902). Paths are made of unescaped keys and escaped here (RFC 6901).

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::Value;

/// Path of the value under these keys.
pub fn place<const N: usize>(keys: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(keys)
}

/// Path of an annotation.
pub fn annotation(key: &str) -> PointerBuf {
    place(["metadata", "annotations", key])
}

/// Tests a value: the apiserver refuses the patch if another one is at this path. A null tests that the key
/// is absent, in a map that exists.
pub fn test(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Test(TestOperation { path, value: value.into() })
}

/// Tests the resource version: the apiserver refuses the patch if the object has another one.
pub fn is_at_version(resource_version: Option<&str>) -> PatchOperation {
    test(place(["metadata", "resourceVersion"]), resource_version)
}

/// Tests the uid: the apiserver refuses the patch for another object of the same name.
pub fn has_uid(uid: Option<&str>) -> PatchOperation {
    test(place(["metadata", "uid"]), uid)
}

/// Sets a value that may be absent.
pub fn add(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value: value.into() })
}

/// Sets a value that exists.
pub fn replace(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path, value: value.into() })
}

/// Removes a value that exists.
pub fn remove(path: PointerBuf) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path })
}

/// Replaces all finalizers of the object.
pub fn set_finalizers(all: &[String]) -> PatchOperation {
    add(place(["metadata", "finalizers"]), all)
}
