//! Metadata of objects: reads it, and fills in what the server sets. And the form in which objects are
//! answered: complete, or only their metadata.

use std::time::{Duration, SystemTime};

use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::failure::Failure;

/// The letters of generated names: no vowels, and no characters that look alike.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A text field of the metadata; empty if it is not there.
pub(super) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Whether its deletion was requested.
pub(super) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Its finalizers.
pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The grace period of its deletion, in seconds.
pub(super) fn grace(object: &Value) -> i64 {
    object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0)
}

/// `metadata` as an object, made if it is missing.
pub(super) fn meta_mut(object: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("just made")
}

/// Copies a field from `old`, also if it is missing there.
pub(super) fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => new.insert(field.to_owned(), value.clone()),
        None => new.remove(field),
    };
}

/// Now, in whole seconds, as `creationTimestamp` has it.
pub(super) fn timestamp(ahead: Duration) -> String {
    humantime::format_rfc3339_seconds(SystemTime::now() + ahead).to_string()
}

/// Seconds since 1970.
pub(super) fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A random (version 4) UUID.
pub(super) fn uid() -> String {
    let mut bytes: [u8; 16] = random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// The suffix for a `generateName`.
pub(super) fn suffix() -> String {
    let bytes: [u8; 5] = random();
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// Lower-case letters, digits, `-` and `.`: the format of names.
pub(super) fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| inner(*byte));
    let bytes = name.as_bytes();
    name.len() <= 253
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| inner(*byte) || *byte == b'-' || *byte == b'.')
}

/// The format of label values, and of the last part of their keys.
pub(super) fn is_label_value(value: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.is_empty()
        || value.len() <= 63
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// `name` or `domain/name`: the format of keys of labels and annotations.
pub(super) fn is_qualified(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(at, name)| (Some(at), name));
    domain.is_none_or(is_name) && !name.is_empty() && is_label_value(name)
}

/// Through the type and back: what does not fit is an error, what the type lacks is dropped.
pub(super) fn through<T: DeserializeOwned + Serialize>(object: Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(object).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// The form that the `Accept` header requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    Metadata,
}

impl Shape {
    /// The first form in the header that is implemented. Tables are not, so clients fall back.
    pub(super) fn parse(accept: &str) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            if !["application/json", "application/*", "*/*"].contains(&parts.next().unwrap_or("")) {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Whole),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Ok(Self::Metadata);
                }
                Some(_) => {}
            }
        }
        Err(Failure::not_acceptable())
    }

    /// One object, as stored.
    pub(super) fn object(self, resource: &Resource, stored: &Value) -> Value {
        match self {
            Self::Whole => resource.encode(stored),
            Self::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": stored["metadata"],
            }),
        }
    }

    /// A list of such objects.
    pub(super) fn list(self, resource: &Resource, metadata: Value, items: &[&Value]) -> Value {
        let items: Vec<Value> = items
            .iter()
            .map(|item| {
                let mut item = self.object(resource, item);
                // The real server leaves these out because the list has them already.
                if self == Self::Whole && resource.schema().is_none() {
                    item.as_object_mut()
                        .map(|item| (item.remove("kind"), item.remove("apiVersion")));
                }
                item
            })
            .collect();
        let (kind, version) = match self {
            Self::Whole => (resource.list_kind.clone(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
    }

    /// The object in a bookmark: only the version.
    pub(super) fn bookmark(self, resource: &Resource, version: u64, initial_end: bool) -> Value {
        let mut metadata =
            json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self {
            Self::Whole => (resource.kind.clone(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    }
}
