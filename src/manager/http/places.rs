//! Places for connections. A newcomer always gets one: if none is free, a connection that has shown
//! no credentials loses its own. So no peer can keep out probes and callers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::limits::Limits;
use crate::process::unmap_code;

/// Where a connection comes from, as far as the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Address(IpAddr),
    Uid(u32),
}

impl Origin {
    /// Connections that have shown no credentials. A uid has no limit of its own: who reaches the
    /// socket shares the pod, and forty requests at once are forty requests.
    fn limit(self, limits: &Limits) -> usize {
        match self {
            Self::Address(_) => limits.per_address(),
            Self::Uid(_) => limits.connections,
        }
    }
}

/// Use of a connection, ordered: the first is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// A handshake, a part of a request or nothing; no credentials so far.
    Silent,
    /// A request without credentials is being answered: a probe.
    Probe,
    /// No request at present, after one with credentials.
    Idle,
    /// A request with credentials is being answered: the connection is never evicted.
    Call,
}

#[derive(Debug)]
struct Connection {
    origin: Origin,
    used: Use,
    /// Evicts the connection when it is dropped.
    _keep: Option<oneshot::Sender<()>>,
}

/// The connections of a listener. Those with lower numbers are older.
#[derive(Debug, Default)]
struct Table {
    connections: BTreeMap<u64, Connection>,
    next: u64,
}

impl Table {
    /// Number of the connection that is evicted for a newcomer from `origin`; `None` if there is a
    /// free place.
    ///
    /// Of those without credentials, the origin that has most of them loses one: who opens many
    /// connections takes the places from itself, and the kubelet keeps its own. Where all come from
    /// one address, as behind NAT, the oldest is evicted.
    fn evicted_for(&self, limits: &Limits, origin: Origin) -> Option<u64> {
        let unproven = || self.connections.iter().filter(|(_, held)| held.used < Use::Idle);
        let count = |origin| unproven().filter(|(_, held)| held.origin == origin).count();
        let mut greediest = origin;
        if count(origin) < origin.limit(limits) {
            if self.connections.len() < limits.connections {
                return None;
            }
            // Callers that keep many idle connections leave some places to others.
            if unproven().count() < limits.unproven() {
                let idle = self.connections.iter().find(|(_, held)| held.used == Use::Idle);
                if let Some((number, _)) = idle {
                    return Some(*number);
                }
            }
            let most =
                unproven().max_by_key(|(number, held)| (count(held.origin), Reverse(*number)));
            greediest = most?.1.origin;
        }
        unproven()
            .filter(|(_, held)| held.origin == greediest)
            .min_by_key(|(number, held)| (held.used, *number))
            .map(|(number, _)| *number)
    }

    fn enter(&mut self, origin: Origin, keep: Option<oneshot::Sender<()>>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connections.insert(number, Connection { origin, used: Use::Silent, _keep: keep });
        number
    }

    fn request_begins(&mut self, number: u64) {
        if let Some(held) = self.connections.get_mut(&number) {
            held.used = held.used.max(Use::Probe);
        }
    }

    /// Notes that the request has credentials. Some places stay without protection, so that there
    /// is always one for a newcomer.
    fn request_is_call(&mut self, limits: &Limits, number: u64) {
        let calls = self.connections.values().filter(|held| held.used == Use::Call).count();
        if calls + limits.unproven() < limits.connections
            && let Some(held) = self.connections.get_mut(&number)
        {
            held.used = Use::Call;
        }
    }

    fn request_ends(&mut self, number: u64) {
        if let Some(held) = self.connections.get_mut(&number) {
            held.used = if held.used < Use::Idle { Use::Silent } else { Use::Idle };
        }
    }
}

/// The places of a listener.
#[derive(Debug)]
pub(super) struct Places {
    table: Mutex<Table>,
    limits: Limits,
    /// One permit for each descriptor: an evicted connection has one until it is closed.
    descriptors: Arc<Semaphore>,
    evictions: Counter,
}

impl Places {
    pub(super) fn new(limits: Limits, evictions: Counter) -> Arc<Self> {
        let descriptors = Arc::new(Semaphore::new(limits.descriptors()));
        Arc::new(Self { table: Mutex::default(), limits, descriptors, evictions })
    }

    /// Permission to accept a connection. Waits while too many evicted connections are not closed
    /// yet; those wait for nothing.
    pub(super) async fn descriptor(&self) -> OwnedSemaphorePermit {
        match self.descriptors.clone().acquire_owned().await {
            Ok(permit) => permit,
            // Only if the semaphore were closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives a new connection its place.
    pub(super) fn enter(
        self: &Arc<Self>,
        origin: Origin,
        descriptor: OwnedSemaphorePermit,
    ) -> (Place, Evicted) {
        let (keep, evicted) = oneshot::channel();
        let mut table = self.table();
        if let Some(number) = table.evicted_for(&self.limits, origin) {
            table.connections.remove(&number);
            self.evictions.inc();
        }
        let number = table.enter(origin, Some(keep));
        drop(table);
        (Place { places: self.clone(), number, _descriptor: descriptor }, Evicted(evicted))
    }

    /// Returns when no connection is left open.
    pub(super) async fn all_closed(&self) {
        let all = u32::try_from(self.limits.descriptors()).unwrap_or(u32::MAX);
        let _ = self.descriptors.acquire_many(all).await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes when the connection must end.
#[derive(Debug)]
pub(super) struct Evicted(oneshot::Receiver<()>);

impl Evicted {
    pub(super) async fn wait(self) {
        // The sender is dropped; nothing is ever sent.
        let _ = self.0.await;
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    _descriptor: OwnedSemaphorePermit,
}

impl Place {
    /// Notes that a request begins; it ends when the returned value is dropped.
    pub(super) fn request(&self) -> OpenRequest<'_> {
        self.places.table().request_begins(self.number);
        OpenRequest(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.table();
        table.connections.remove(&self.number);
        let is_last = table.connections.is_empty();
        drop(table);
        if is_last {
            // TLS and HTTP are most of the program, and nobody calls.
            unmap_code();
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct OpenRequest<'a>(&'a Place);

impl OpenRequest<'_> {
    /// Notes that the request has credentials: from now on its connection is not evicted.
    pub(super) fn has_credentials(&self) {
        let Place { places, number, .. } = self.0;
        places.table().request_is_call(&places.limits, *number);
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.places.table().request_ends(self.0.number);
    }
}

#[cfg(test)]
mod tests;
