//! Documents in a cluster: written by the primary, stored by every copy before they are
//! acknowledged, read from any copy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::{Command, Index, NodeInfo, ShardCopy, State};
use super::wire::{self, Failure, Message, Sizes};
use super::{Cluster, lock, routing};
use crate::engine::data::{self, Age, Document, ShardId};

/// How long another node may take for a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before a write looks for a primary again, if no new state arrives before.
const RETRY: Duration = Duration::from_millis(200);

/// The result of a write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) document: Document,
    /// The number of copies, and how many of them stored it.
    pub(crate) copies: (usize, usize),
}

/// The number of documents, and some of them.
type Hits = (usize, Vec<Document>);

impl Cluster {
    /// Writes a document, by `deadline`.
    pub(crate) fn write(
        self: &Arc<Self>,
        index: &str,
        id: &str,
        source: &Value,
        deadline: Instant,
    ) -> Result<Written, Failure> {
        loop {
            let state = self.local_state();
            let (number, shards) = shard_of(&state, index, id)?;
            let primary = shards.shards[number].primary_node().and_then(|id| state.nodes.get(id));
            let written = primary.map(|primary| {
                let (index, id) = (index.to_owned(), id.to_owned());
                let message = Message::Write { index, shard: number, id, source: source.clone() };
                self.ask_member::<Written>(primary, message, DOCUMENT_TIMEOUT)
            });
            match written {
                Some(Ok(written)) => return Ok(written),
                Some(Err(failure)) if failure.status < 500 => return Err(failure),
                Some(Err(_)) | None => {}
            }
            if Instant::now() >= deadline {
                let reason = format!("[{index}][{number}] primary shard is not active");
                return Err(Failure::new(503, "unavailable_shards_exception", reason));
            }
            drop(self.sleep(self.lock(), Some(RETRY)));
        }
    }

    /// Reads a document from any copy, the local one first.
    pub(crate) fn read(
        self: &Arc<Self>,
        index: &str,
        id: &str,
    ) -> Result<Option<Document>, Failure> {
        let state = self.local_state();
        let (number, found) = shard_of(&state, index, id)?;
        let shard = ShardId { uuid: found.uuid.clone(), number };
        let message = || Message::Read { shard: shard.clone(), id: id.to_owned() };
        self.ask_copies(&state, (index, number), message)
    }

    /// Documents of an index, at most this many from each shard.
    pub(crate) fn list(
        self: &Arc<Self>,
        name: &str,
        most: usize,
    ) -> Result<Vec<Result<Hits, Failure>>, Failure> {
        let state = self.local_state();
        let index = state.indices.get(name).ok_or_else(|| Failure::no_such_index(name))?;
        let shards = (0..index.shards.len()).map(|number| {
            let shard = ShardId { uuid: index.uuid.clone(), number };
            let message = || Message::List { shard: shard.clone(), most };
            self.ask_copies(&state, (name, number), message)
        });
        Ok(shards.collect())
    }

    /// The size on disk of each member; members that do not answer are left out.
    pub(crate) fn sizes(
        self: &Arc<Self>,
        state: &State,
    ) -> std::collections::BTreeMap<String, Sizes> {
        let ask =
            |node: &NodeInfo| self.ask_member::<Sizes>(node, Message::Sizes, DOCUMENT_TIMEOUT).ok();
        (state.nodes.values()).filter_map(|node| Some((node.id.clone(), ask(node)?))).collect()
    }

    fn ask_copies<T: serde::de::DeserializeOwned>(
        self: &Arc<Self>,
        state: &State,
        (index, number): (&str, usize),
        message: impl Fn() -> Message,
    ) -> Result<T, Failure> {
        let shard = state.indices.get(index).and_then(|index| index.shards.get(number));
        let mut nodes: Vec<&str> = shard.into_iter().flat_map(|shard| shard.started()).collect();
        nodes.sort_by_key(|id| *id != self.me.id);
        let reason = format!("No shard available for [{index}][{number}]");
        let mut failure = Failure::new(503, "no_shard_available_action_exception", reason);
        for node in nodes.into_iter().filter_map(|id| state.nodes.get(id)) {
            match self.ask_member(node, message(), DOCUMENT_TIMEOUT) {
                Ok(found) => return Ok(found),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// As primary: stores a document here and in every other copy.
    pub(super) fn write_here(
        self: &Arc<Self>,
        name: &str,
        number: usize,
        id: &str,
        source: Value,
    ) -> Result<Written, Failure> {
        let uuid = |state: &State| state.indices.get(name).map(|index| index.uuid.clone());
        let uuid = uuid(&self.local_state()).ok_or_else(|| Failure::no_such_index(name))?;
        let id_of_shard = ShardId { uuid, number };
        let copy = self.shard(&id_of_shard)?;
        let mut copy = lock(&copy);
        // Read with the lock held, so that no copy is added between its dump and this write.
        let state = self.local_state();
        let index = state.indices.get(name).ok_or_else(|| Failure::no_such_index(name))?;
        let shard = &index.shards[number];
        if shard.primary_node() != Some(&self.me.id) {
            let reason = format!("[{name}][{number}] is not a primary here");
            return Err(Failure::new(503, "no_longer_primary_shard_exception", reason));
        }
        let old = copy.get(id).map_err(|error| Failure::disk(&error))?;
        let document = Document {
            id: id.to_owned(),
            version: old.map_or(0, |old| old.version) + 1,
            seq_no: copy.next_seq_no(),
            primary_term: shard.primary_term,
            source,
        };
        copy.put(&document).map_err(|error| Failure::disk(&error))?;
        let mut successful = 1;
        for node in shard.copies.iter().filter(|copy| !copy.primary).filter_map(|copy| copy.node())
        {
            let message = Message::Replicate {
                index: name.to_owned(),
                shard: id_of_shard.clone(),
                document: document.clone(),
            };
            let kept = match state.nodes.get(node) {
                Some(node) => self.ask_member::<()>(node, message, DOCUMENT_TIMEOUT).is_ok(),
                None => false,
            };
            if kept {
                successful += 1;
                continue;
            }
            // Every valid copy must have all acknowledged documents, so this one is removed.
            self.command(Command::FailCopy {
                index: name.to_owned(),
                shard: number,
                node: node.to_owned(),
                primary_term: shard.primary_term,
            })?;
        }
        Ok(Written { document, copies: (shard.copies.len(), successful) })
    }

    /// As another copy: stores a document of the primary.
    pub(super) fn replicate(
        &self,
        index: &str,
        shard: &ShardId,
        document: Document,
    ) -> Result<(), Failure> {
        let state = self.local_state();
        let known = state.indices.get(index).and_then(|index| index.shards.get(shard.number));
        if known.is_some_and(|known| known.primary_term > document.primary_term) {
            let reason = "a primary of an older term";
            return Err(Failure::new(503, "no_longer_primary_shard_exception", reason));
        }
        let copy = self.shard(shard)?;
        lock(&copy).put(&document).map_err(|error| Failure::disk(&error))
    }

    pub(super) fn read_here(&self, shard: &ShardId, id: &str) -> Result<Option<Document>, Failure> {
        let directory = self.data.shard(&shard.uuid, shard.number);
        data::read_document(&directory, id).map_err(|error| Failure::disk(&error))
    }

    pub(super) fn list_here(&self, shard: &ShardId, most: usize) -> Result<Hits, Failure> {
        let directory = self.data.shard(&shard.uuid, shard.number);
        data::list_documents(&directory, most).map_err(|error| Failure::disk(&error))
    }

    pub(super) fn sizes_here(&self) -> Result<Sizes, Failure> {
        let state = self.local_state();
        let mut sizes = Sizes::new();
        for index in state.indices.values() {
            for number in 0..index.shards.len() {
                let directory = self.data.shard(&index.uuid, number);
                let (count, documents) = data::list_documents(&directory, usize::MAX)
                    .map_err(|error| Failure::disk(&error))?;
                let bytes: usize = documents.iter().map(|it| it.source.to_string().len()).sum();
                sizes.insert(format!("{}/{number}", index.uuid), (count, bytes as u64));
            }
        }
        Ok(sizes)
    }

    /// Opens the local copy.
    pub(super) fn shard(&self, id: &ShardId) -> Result<Arc<Mutex<data::StoredShard>>, Failure> {
        let mut shards = lock(&self.shards);
        if let Some(shard) = shards.get(id) {
            return Ok(Arc::clone(shard));
        }
        let shard = data::StoredShard::open(self.data.shard(&id.uuid, id.number))
            .map_err(|error| Failure::disk(&error))?;
        let shard = Arc::new(Mutex::new(shard));
        shards.insert(id.clone(), Arc::clone(&shard));
        Ok(shard)
    }
}

/// The shard that a document belongs to.
fn shard_of<'a>(state: &'a State, name: &str, id: &str) -> Result<(usize, &'a Index), Failure> {
    let index = state.indices.get(name).ok_or_else(|| Failure::no_such_index(name))?;
    // FNV-1a: any hash is good enough that is the same on every node.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let shards = index.shards.len().max(1) as u64;
    Ok((usize::try_from(hash % shards).unwrap_or(0), index))
}

// How a new copy gets its documents: all of them from the primary, which also sends it later
// writes.

/// How long a recovery may take, including the report to the master.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// A copy that can be started.
pub(super) struct Due {
    pub(super) index: String,
    pub(super) shard: ShardId,
    pub(super) node: String,
    pub(super) primary: bool,
}

impl Due {
    /// The key of the copy.
    pub(super) fn key(&self) -> (String, usize, String) {
        (self.index.clone(), self.shard.number, self.node.clone())
    }
}

impl Cluster {
    /// As master: starts recoveries, one thread per node.
    pub(super) fn start_recoveries(self: &Arc<Self>, due: BTreeMap<String, Vec<Due>>) {
        for due in due.into_values() {
            let cluster = Arc::clone(self);
            // If no thread can be created, the copies stay as they are, and health shows that.
            let _ = wire::thread(move || cluster.recover_all(&due));
        }
    }

    fn recover_all(self: &Arc<Self>, due: &[Due]) {
        let recovered = |due: &&Due| due.primary || self.order(due).is_ok();
        let done: Vec<&Due> = due.iter().filter(recovered).collect();
        let started = self.update(|state| {
            for due in &done {
                if let Some(index) = state.indices.get_mut(&due.index) {
                    routing::start_copy(index, due.shard.number, &due.node);
                }
            }
            Ok(())
        });
        if done.len() < due.len() || started.is_err() {
            self.pause();
        }
        let mut core = self.lock();
        for due in due {
            core.recovering.remove(&due.key());
        }
        drop(core);
        self.changed.notify_all();
    }

    /// As master: requests that a node recovers a copy.
    fn order(self: &Arc<Self>, due: &Due) -> Result<(), Failure> {
        let state = self.local_state();
        let index =
            state.indices.get(&due.index).ok_or_else(|| Failure::no_such_index(&due.index))?;
        let primary = index.shards.get(due.shard.number).and_then(|shard| shard.primary_node());
        let primary = primary.and_then(|id| state.nodes.get(id)).ok_or_else(Failure::no_master)?;
        let node = state.nodes.get(&due.node).ok_or_else(Failure::no_master)?;
        let message = Message::Recover {
            index: due.index.clone(),
            shard: due.shard.clone(),
            primary: primary.clone(),
        };
        self.ask_member(node, message, RECOVERY_TIMEOUT)
    }

    /// As new copy: gets all documents from the primary.
    pub(super) fn recover(
        self: &Arc<Self>,
        index: &str,
        shard: &ShardId,
        primary: &NodeInfo,
    ) -> Result<(), Failure> {
        let copy = self.shard(shard)?;
        let dump = Message::Dump { index: index.to_owned(), shard: shard.clone() };
        // Without the lock: the primary may be writing to this copy right now.
        let (since, documents): (Age, Vec<Document>) =
            self.ask(&primary.transport, &dump, RECOVERY_TIMEOUT)?;
        lock(&copy).become_copy_of(since, &documents).map_err(|error| Failure::disk(&error))
    }

    /// As primary: returns all documents; from now on, writes also go to the new copy.
    pub(super) fn dump(&self, index: &str, id: &ShardId) -> Result<(Age, Vec<Document>), Failure> {
        let term = self.wait(Instant::now() + RECOVERY_TIMEOUT, |state| {
            let shard = state.indices.get(index)?.shards.get(id.number)?;
            let is_new = |copy: &ShardCopy| copy.node().is_some() && copy.started_on().is_none();
            let mine = shard.primary_node() == Some(&self.me.id);
            (mine && shard.copies.iter().any(is_new)).then_some(shard.primary_term)
        });
        let term = term.ok_or_else(Failure::no_master)?;
        let copy = self.shard(id)?;
        let copy = lock(&copy);
        let documents = copy.all().map_err(|error| Failure::disk(&error))?;
        Ok(((term, copy.next_seq_no()), documents))
    }
}
