//! How a new copy gets its documents: all of them from the primary, which also sends it later
//! writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::document::ShardId;
use super::document::{Age, Document};
use super::failure::Failure;
use super::state::{NodeInfo, ShardCopy};
use super::wire::{self, Message};
use super::{Cluster, lock, routing};

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
