//! Objects and their history: one counter of versions for everything, as in etcd. And watches, which
//! follow the history.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, unfold};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::answer::{Call, Target};
use super::failure::{Cause, Failure};
use super::object::Shape;
use super::selector::Selector;
use super::verbs::State;
use super::{Shared, Signals};

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
    fn forgotten(&self) -> u64 {
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
    fn since(&self, version: u64) -> impl Iterator<Item = &Change> {
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

// Watches: every change since a version, as lines of JSON, until the client ends it or its time is
// over.

/// How long a watch lasts if the client does not set it.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// How often a client that asked for bookmarks gets the version.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// One watch.
#[derive(Debug)]
pub(super) struct Watcher {
    shared: Arc<Shared>,
    signals: watch::Receiver<Signals>,
    target: Target,
    selector: Selector,
    shape: Shape,
    bookmarks: bool,
    /// Everything up to this version was sent.
    version: u64,
    lines: VecDeque<Bytes>,
    deadline: Instant,
    next_bookmark: Instant,
    /// The signals that were handled last.
    bookmarked: u64,
    cut: u64,
    ended: bool,
}

impl Watcher {
    /// Begins a watch: the existing objects are read in the same step as the version to continue
    /// from.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        call: &Call,
        target: Target,
        selector: Selector,
        shape: Shape,
    ) -> Result<Self, Failure> {
        let since = match call.parameter("resourceVersion").map(str::parse) {
            None => 0,
            Some(Ok(version)) => version,
            Some(Err(error)) => {
                let message = format!("resourceVersion: Invalid value: {error}");
                return Err(Failure::unforeseen(message));
            }
        };
        let initial = call.parameter("sendInitialEvents").map(|value| value == "true");
        check_initial(call, initial)?;
        let seconds = call.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let now = Instant::now();
        let signals = shared.signals.subscribe();
        let seen = *signals.borrow();
        let mut watcher = Self {
            shared: Arc::clone(shared),
            signals,
            target,
            selector,
            shape,
            bookmarks: call.flag("allowWatchBookmarks"),
            version: since,
            lines: VecDeque::new(),
            deadline: now + seconds.map_or(LONGEST, Duration::from_secs),
            next_bookmark: now + BOOKMARKS,
            bookmarked: seen.bookmarks,
            cut: seen.cuts,
            ended: false,
        };
        let state = shared.state();
        if initial.unwrap_or(since == 0) {
            watcher.show_everything(&state, initial.is_some());
        } else if since < state.store.compacted() {
            let message =
                format!("too old resource version: {since} ({})", state.store.compacted());
            watcher.fail(&Failure::expired(message));
        }
        drop(state);
        Ok(watcher)
    }

    /// The frames of the answer. An error breaks off the connection.
    pub(super) fn frames(self) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
        unfold(self, |mut watcher| async move {
            let line = watcher.next().await?;
            Some((line.map(Frame::data), watcher))
        })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.signals.borrow_and_update().cuts != self.cut {
                self.ended = true;
                self.cut = self.signals.borrow().cuts;
                return Some(Err(io::Error::other("cut by a fault")));
            }
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            if self.ended {
                return None;
            }
            self.collect();
            if !self.lines.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.signals.changed() => self.ended |= changed.is_err(),
                () = sleep_until(self.next_bookmark), if self.bookmarks => self.bookmark(),
                () = sleep_until(self.deadline) => {
                    if self.bookmarks {
                        self.bookmark();
                    }
                    self.ended = true;
                }
            }
        }
    }

    /// Reads the changes since the last call.
    fn collect(&mut self) {
        let signals = *self.signals.borrow();
        if signals.held {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        if self.version < state.store.forgotten() {
            let message = format!("too old resource version: {}", self.version);
            return self.fail(&Failure::expired(message));
        }
        for change in state.store.since(self.version) {
            self.show(change);
        }
        // If the version is in the future, it is kept: changes before it are not shown.
        self.version = self.version.max(state.store.version());
        drop(state);
        if signals.bookmarks != self.bookmarked {
            self.bookmarked = signals.bookmarks;
            if self.bookmarks {
                self.bookmark();
            }
        }
    }

    fn show(&mut self, change: &Change) {
        let namespace = self.target.namespace.as_deref();
        let here = change.key.storage == self.target.resource.storage
            && namespace.is_none_or(|namespace| change.key.namespace == namespace)
            && self.target.name.as_ref().is_none_or(|name| change.key.name == *name);
        if !here {
            return;
        }
        let before = change.before.as_deref().filter(|object| self.selector.matches(object));
        let is_in = !change.deleted && self.selector.matches(&change.object);
        match (before, is_in) {
            (None, true) => self.push("ADDED", &change.object),
            (Some(_), true) => self.push("MODIFIED", &change.object),
            (Some(before), false) => {
                let mut last = before.clone();
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                self.push("DELETED", &last);
            }
            (None, false) => {}
        }
    }

    fn show_everything(&mut self, state: &State, say_end: bool) {
        let (resource, namespace) = (self.target.resource.clone(), self.target.namespace.clone());
        for (key, object) in state.store.list(&resource.storage, namespace.as_deref()) {
            let named = self.target.name.as_ref().is_none_or(|name| key.name == *name);
            if named && self.selector.matches(object) {
                self.push("ADDED", object);
            }
        }
        self.version = state.store.version();
        if say_end && self.bookmarks {
            let bookmark = self.shape.bookmark(&resource, self.version, true);
            self.line("BOOKMARK", &bookmark);
        }
    }

    fn bookmark(&mut self) {
        self.next_bookmark = Instant::now() + BOOKMARKS;
        let bookmark = self.shape.bookmark(&self.target.resource, self.version, false);
        self.line("BOOKMARK", &bookmark);
    }

    fn push(&mut self, kind: &str, stored: &Value) {
        let object = self.shape.object(&self.target.resource, stored);
        self.line(kind, &object);
    }

    fn line(&mut self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.lines.push_back(line.into());
    }

    /// Errors during a watch are events: the answer's code was sent already.
    fn fail(&mut self, failure: &Failure) {
        self.line("ERROR", &failure.status());
        self.ended = true;
    }
}

/// `sendInitialEvents` must come with `resourceVersionMatch`.
fn check_initial(call: &Call, initial: Option<bool>) -> Result<(), Failure> {
    let matching = call.parameter("resourceVersionMatch");
    let note = match (initial, matching) {
        (None, None) | (Some(_), Some("NotOlderThan")) => return Ok(()),
        (None, Some(_)) => {
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        }
        (Some(_), _) => "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    };
    let cause = Cause::forbidden("resourceVersionMatch", note);
    Err(Failure::invalid_options("ListOptions", cause))
}
