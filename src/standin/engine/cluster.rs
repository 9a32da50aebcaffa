//! Nodes that form a cluster: one elected master decides the state, and every member stores it.
//!
//! As in the real engines, a state is committed when more than half of the voting configuration has
//! stored it on disk; votes are counted in the same way. Simpler than there: a master connects to
//! its members and not the other way round, and publishes the whole state each time. One thread,
//! the coordinator, sleeps until something happens. At rest the only traffic is one ping per
//! member, three times per fault detection time. Without `discovery.seed_hosts` a node is a cluster
//! by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Shutdown as Closing, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::config::{Config, Transport};
use super::data::{self, Data};
use super::print_line;

mod coordinator;
mod publish;
mod replication;
mod routing;
mod state;
mod wire;

pub(crate) use super::data::Document;
pub(crate) use routing::{ALLOCATION, EXCLUDED, excluded};
pub(crate) use state::{
    Changes, Command, CopyState, Index, NodeInfo, Shard, ShardCopy, Shutdown, State, now_ms,
    time_value,
};
pub(crate) use wire::Failure;

/// A silent node stays a member for this long unless `standin.fault_detection_ms` is set.
const FAULT_DETECTION: Duration = Duration::from_secs(10);

/// This node in the cluster.
pub(crate) struct Cluster {
    me: NodeInfo,
    name: String,
    transport: Option<Transport>,
    /// `cluster.routing.allocation.enable` of the config.
    allocation: String,
    recovery: Duration,
    fault_detection: Duration,
    data: Data,
    core: Mutex<Core>,
    /// Signals a change in `core`.
    changed: Condvar,
    /// Held while a state is made and published, so that this happens one after the other.
    publishing: Mutex<()>,
    /// One for each shard that was written to here, held during a write and a dump.
    shards: Mutex<BTreeMap<data::ShardId, Arc<Mutex<data::StoredShard>>>>,
}

/// Shared by the threads of a node.
struct Core {
    /// Messages of masters with an older term are refused.
    term: u64,
    /// On disk; the next master continues with it.
    accepted: State,
    /// Committed, and shown by REST. `None` until this process was a member.
    applied: Option<State>,
    mode: Mode,
    /// As master: the connection to each member, by id.
    links: BTreeMap<String, publish::Link>,
    /// As master: members (id, ephemeral id) that are gone but still in the state.
    gone: BTreeSet<(String, String)>,
    /// As master: running recoveries (index, shard, node).
    recovering: BTreeSet<(String, usize, String)>,
}

/// Survives the process. A term that is newer than that of the state is a vote.
#[derive(Serialize, Deserialize)]
struct Kept<S> {
    term: u64,
    state: S,
}

/// The role of this node towards the others.
#[derive(Clone, PartialEq)]
enum Mode {
    /// Not started: neither ready nor in a cluster.
    Waiting,
    /// Searching for a master, since this time.
    Candidate { since: Instant },
    /// Member of that master's cluster, through the connection with that number.
    Follower { leader: Box<NodeInfo>, link: u64 },
    /// The elected master.
    Leader,
    /// Stopping.
    Closed,
}

impl Cluster {
    /// Reads the data path; nothing else happens before [`start`](Self::start).
    pub(crate) fn new(config: &Config, data: Data, me: NodeInfo) -> io::Result<Self> {
        let Kept { term, state: accepted } = match data.read_state()? {
            Some(content) => serde_json::from_slice(&content)?,
            None => Kept { term: 0, state: State::default() },
        };
        let core = Core {
            term,
            accepted,
            applied: None,
            mode: Mode::Waiting,
            links: BTreeMap::new(),
            gone: BTreeSet::new(),
            recovering: BTreeSet::new(),
        };
        Ok(Self {
            me,
            name: config.cluster_name.clone(),
            transport: config.transport.clone(),
            allocation: config.allocation.clone(),
            recovery: config.behaviour.recovery,
            fault_detection: config.behaviour.fault_detection.unwrap_or(FAULT_DETECTION),
            data,
            core: Mutex::new(core),
            changed: Condvar::new(),
            publishing: Mutex::new(()),
            shards: Mutex::new(BTreeMap::new()),
        })
    }

    /// Starts discovery, and accepts connections of the other nodes.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        self.lock().mode = Mode::Candidate { since: Instant::now() };
        if let Some(transport) = &self.transport {
            let listener = TcpListener::bind((transport.host.as_str(), transport.port))?;
            wire::serve(self, listener)?;
        }
        if self.transport.is_none() {
            // Ready means that it answers: a single node does not wait for others.
            self.elect_itself();
        }
        let cluster = Arc::clone(self);
        wire::thread(move || cluster.coordinate()).map(drop)
    }

    /// Leaves the cluster: the other nodes notice it at once.
    pub(crate) fn leave(&self) {
        let mut core = self.lock();
        core.mode = Mode::Closed;
        for link in core.links.values() {
            // A broken connection has the same effect.
            let _ = link.stream.shutdown(Closing::Both);
        }
        core.links.clear();
        drop(core);
        self.changed.notify_all();
    }

    /// This node.
    pub(crate) fn me(&self) -> &NodeInfo {
        &self.me
    }

    /// The documents of this node alone.
    pub(crate) fn data(&self) -> &Data {
        &self.data
    }

    /// The state as this node knows it, with or without a master.
    pub(crate) fn local_state(&self) -> State {
        let core = self.lock();
        let mut state = core.applied.clone().unwrap_or_default();
        if !core.has_master() {
            state.master = None;
        }
        if core.applied.is_none() {
            state.nodes.insert(self.me.id.clone(), self.me.clone());
        }
        state
    }

    /// The state, after waiting that long for a master.
    pub(crate) fn state(&self, limit: Duration) -> Result<State, Failure> {
        self.wait(Instant::now() + limit, |state| Some(state.clone()))
            .ok_or_else(Failure::no_master)
    }

    /// Waits until `check` returns something for the state of a cluster that has a master.
    pub(crate) fn wait<T>(
        &self,
        deadline: Instant,
        mut check: impl FnMut(&State) -> Option<T>,
    ) -> Option<T> {
        let mut core = self.lock();
        loop {
            let state = core.applied.as_ref().filter(|_| core.has_master());
            if let Some(found) = state.and_then(&mut check) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            core = self.sleep(core, Some(left));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// Sleeps until something changes, or for that long.
    fn sleep<'a>(
        &self,
        core: MutexGuard<'a, Core>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, Core> {
        match most {
            Some(most) => match self.changed.wait_timeout(core, most) {
                Ok((core, _)) => core,
                Err(poisoned) => poisoned.into_inner().0,
            },
            None => self.changed.wait(core).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Stores what must survive this process.
    fn persist(&self, core: &Core) -> io::Result<()> {
        let kept = Kept { term: core.term, state: &core.accepted };
        self.data.write_state(&serde_json::to_vec(&kept)?)
    }

    /// Searches for a master again.
    fn become_candidate(&self, core: &mut Core) {
        if core.mode == Mode::Closed {
            return;
        }
        if matches!(core.mode, Mode::Leader | Mode::Follower { .. }) {
            print_line(&format!("master node changed, {} has none", self.me.name));
        }
        for link in core.links.values() {
            // A broken connection has the same effect.
            let _ = link.stream.shutdown(Closing::Both);
        }
        core.links.clear();
        core.gone.clear();
        core.mode = Mode::Candidate { since: Instant::now() };
        self.changed.notify_all();
    }
}

impl Core {
    /// Whether the committed state is from the current master.
    fn has_master(&self) -> bool {
        let leader = match &self.mode {
            Mode::Leader => None,
            Mode::Follower { leader, .. } => Some(&leader.id),
            Mode::Waiting | Mode::Candidate { .. } | Mode::Closed => return false,
        };
        // A new master has not published yet.
        self.applied.as_ref().is_some_and(|state| {
            state.term == self.term && leader.is_none_or(|id| state.master.as_ref() == Some(id))
        })
    }
}

/// A thread that panicked with the lock held has printed the panic; the others continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
