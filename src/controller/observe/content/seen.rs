//! Cached state of a Secret or ConfigMap: digests of its content.

use std::collections::BTreeMap;

use stayput_api::checksum::ContentDigest;
use stayput_pod_update::{Age, EarlierDigests, Ignore};

use super::super::objects::Object;

/// Length of a digest that is noted on pods, in characters.
pub(super) const NOTED: usize = 8;

/// Cached state of an object, also after it is gone.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) is_there: bool,
    /// Digest of each key's content, as it is noted on pods.
    pub(super) digests: BTreeMap<String, String>,
    /// Digests of the same content in deleted objects of this name.
    pub(super) earlier: EarlierDigests,
    pub(super) ignore: Ignore,
    pub(super) age: Age,
    /// Whole digest of each key's content, without the uid: never leaves this process.
    contents: BTreeMap<String, ContentDigest>,
}

impl Seen {
    pub(super) fn of(object: &Object) -> Self {
        let Object { metadata, data, ignore } = object;
        // A user who may read pods, but not Secrets, does not know the uid: without it a weak password could
        // be guessed by its digest.
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let digest = |key: &String, value: &[u8]| {
            let framed = [format!("{uid}\n{}\n{key}\n", key.len()).as_bytes(), value].concat();
            ContentDigest::of(&framed).to_string().chars().take(NOTED).collect()
        };
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
        let changed = metadata.managed_fields.iter().flatten();
        let changed = changed.map(|fields| fields.time.as_ref().map(|time| time.0.as_second()));
        Self {
            is_there: true,
            digests: data.iter().map(|(key, value)| (key.clone(), digest(key, value))).collect(),
            earlier: EarlierDigests::new(),
            ignore: ignore.clone(),
            age: Age {
                created: created.unwrap_or(i64::MAX),
                // If one of them has no time, the time of the last change is unknown.
                changed: changed.max_by_key(|time| time.unwrap_or(i64::MAX)).flatten(),
            },
            contents: data
                .iter()
                .map(|(key, value)| (key.clone(), ContentDigest::of(value)))
                .collect(),
        }
    }

    /// Takes over the digests of `before` for unchanged content: the object may have been made again.
    pub(super) fn after(mut self, before: Option<Self>) -> Self {
        let Some(mut before) = before else { return self };
        for (key, digest) in &self.digests {
            if before.contents.get(key) != self.contents.get(key) {
                continue;
            }
            let mut same = before.earlier.remove(key).unwrap_or_default();
            same.extend(before.digests.remove(key).filter(|before| before != digest));
            if !same.is_empty() {
                self.earlier.insert(key.clone(), same);
            }
        }
        self
    }

    /// The state of an object that is gone: another one may be made with the same content.
    pub(super) fn gone(self) -> Self {
        Self { is_there: false, ..self }
    }
}
