//! Objects and their history: one counter of versions for everything, as in etcd.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Value, json};

/// After this many changes the older half is dropped, as in the real server's caches.
const MOST_CHANGES: usize = 20_000;

/// The key of an object: storage, namespace (empty for none), name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) storage: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One write.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Value>>,
    /// The new state; for a deletion the last state, with the version of the deletion.
    pub(super) object: Arc<Value>,
    pub(super) deleted: bool,
}

/// All objects, now and at every version that is not compacted.
#[derive(Debug)]
pub(super) struct Store {
    version: u64,
    compacted: u64,
    /// Changes up to this version are gone, also for running watches.
    forgotten: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    changes: VecDeque<Change>,
}

impl Store {
    /// An empty store.
    pub(super) fn new() -> Self {
        Self {
            version: 1,
            compacted: 0,
            forgotten: 0,
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
        }
    }

    /// The newest version.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Versions below this one are compacted.
    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Changes up to this version are not known any more.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// The objects of a storage, of one namespace or of all, in the order of their keys.
    pub(super) fn list<'a>(
        &'a self,
        storage: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let first = Key {
            storage: storage.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects.range((Bound::Included(first), Bound::Unbounded)).take_while(
            move |(key, _)| {
                key.storage == storage
                    && namespace.is_none_or(|namespace| key.namespace == namespace)
            },
        )
    }

    /// The same at `version`, which must not be compacted.
    pub(super) fn list_at(
        &self,
        storage: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> BTreeMap<Key, Arc<Value>> {
        let mut objects: BTreeMap<Key, Arc<Value>> = self
            .list(storage, namespace)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        for change in self.changes.iter().rev().take_while(|change| change.version > version) {
            let here = change.key.storage == storage
                && namespace.is_none_or(|namespace| change.key.namespace == namespace);
            if !here {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        objects
    }

    /// What was written after `version`, oldest first.
    pub(super) fn since(&self, version: u64) -> impl Iterator<Item = &Change> {
        let start = self.changes.partition_point(|change| change.version <= version);
        self.changes.range(start..)
    }

    /// Writes an object and gives it the next version.
    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.note(key, before, Arc::clone(&object), false);
        object
    }

    /// Removes an object; watches get `last`.
    pub(super) fn remove(&mut self, key: Key, mut last: Value) -> Arc<Value> {
        self.version += 1;
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let before = self.objects.remove(&key);
        let last = Arc::new(last);
        self.note(key, before, Arc::clone(&last), true);
        last
    }

    /// Refuses earlier versions from now on. Running watches miss nothing.
    pub(super) fn compact(&mut self) {
        self.compacted = self.version;
    }

    fn note(&mut self, key: Key, before: Option<Arc<Value>>, object: Arc<Value>, deleted: bool) {
        self.changes.push_back(Change { version: self.version, key, before, object, deleted });
        if self.changes.len() > MOST_CHANGES {
            let forgotten = self.changes.drain(..MOST_CHANGES / 2).next_back();
            self.forgotten = forgotten.map_or(self.forgotten, |change| change.version);
            self.compacted = self.compacted.max(self.forgotten);
        }
    }
}
