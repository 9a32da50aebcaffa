//! The accepting half of every HTTP server here: places for connections, and the loop that gives them.
//!
//! A newcomer always gets a place: if none is free, a connection that has shown no credentials loses
//! its own. So no peer can keep out probes and callers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Delay from a failed accept (mostly for lack of descriptors) to the next one.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Where a connection comes from, as far as the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Address(IpAddr),
    Uid(u32),
}

/// A listener of TCP or of a unix socket.
pub trait Listener {
    type Stream;

    /// The next connection and its origin.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Origin)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Origin)> {
        let (stream, peer) = self.accept().await?;
        Ok((stream, Origin::Address(peer.ip())))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Origin)> {
        let (stream, _) = self.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Origin::Uid(uid)))
    }
}

/// Numbers of connections of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Number of connections. A further one takes the place of one that has shown no credentials.
    pub connections: usize,
    /// Number of connections that have shown no credentials, for one address. A uid has no limit of
    /// its own: who reaches the socket shares the pod, and forty requests at once are forty requests.
    pub per_address: usize,
}

impl Capacity {
    fn of_origin(&self, origin: Origin) -> usize {
        match origin {
            Origin::Address(_) => self.per_address,
            Origin::Uid(_) => self.connections,
        }
    }

    /// Number of places that calls, and callers that idle, leave to others.
    pub fn unproven(&self) -> usize {
        self.connections / 4
    }

    /// Number of descriptors of all connections, with those that were evicted and are not closed yet.
    pub fn descriptors(&self) -> usize {
        self.connections + self.per_address
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
    fn evicted_for(&self, capacity: &Capacity, origin: Origin) -> Option<u64> {
        let unproven = || self.connections.iter().filter(|(_, held)| held.used < Use::Idle);
        let count = |origin| unproven().filter(|(_, held)| held.origin == origin).count();
        let mut greediest = origin;
        if count(origin) < capacity.of_origin(origin) {
            if self.connections.len() < capacity.connections {
                return None;
            }
            // Callers that keep many idle connections leave some places to others.
            if unproven().count() < capacity.unproven() {
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
    fn request_is_call(&mut self, capacity: &Capacity, number: u64) {
        let calls = self.connections.values().filter(|held| held.used == Use::Call).count();
        if calls + capacity.unproven() < capacity.connections
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
pub struct Places {
    table: Mutex<Table>,
    capacity: Capacity,
    /// One permit for each descriptor: an evicted connection has one until it is closed.
    descriptors: Arc<Semaphore>,
    on_eviction: Box<dyn Fn() + Send + Sync>,
    on_last_closed: fn(),
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Places {
    /// Free places. `on_eviction` is called for each connection that loses its place,
    /// `on_last_closed` whenever no connection is left.
    pub fn new(
        capacity: Capacity,
        on_eviction: impl Fn() + Send + Sync + 'static,
        on_last_closed: fn(),
    ) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            capacity,
            descriptors: Arc::new(Semaphore::new(capacity.descriptors())),
            on_eviction: Box::new(on_eviction),
            on_last_closed,
        })
    }

    /// Accepts connections until this future is dropped; the connections go on. Each is served until
    /// another needs its place.
    pub async fn accept<L: Listener, F>(
        self: &Arc<Self>,
        listener: L,
        connection: impl Fn(L::Stream, Origin, Place) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut is_failing = false;
        loop {
            let descriptor = self.descriptor().await;
            let (stream, origin) = match listener.next().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(%error, "no connection can be accepted; it is tried again");
                    }
                    is_failing = true;
                    // Without free descriptors this would be a busy loop.
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            is_failing = false;
            let (place, evicted) = self.enter(origin, descriptor);
            tokio::spawn(boxed(evicted.interrupts(connection(stream, origin, place))));
        }
    }

    /// Permission to accept a connection. Waits while too many evicted connections are not closed
    /// yet; those wait for nothing.
    async fn descriptor(&self) -> OwnedSemaphorePermit {
        match self.descriptors.clone().acquire_owned().await {
            Ok(permit) => permit,
            // Only if the semaphore were closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives a new connection its place.
    fn enter(
        self: &Arc<Self>,
        origin: Origin,
        descriptor: OwnedSemaphorePermit,
    ) -> (Place, Evicted) {
        let (keep, evicted) = oneshot::channel();
        let mut table = self.table();
        if let Some(number) = table.evicted_for(&self.capacity, origin) {
            table.connections.remove(&number);
            (self.on_eviction)();
        }
        let number = table.enter(origin, Some(keep));
        drop(table);
        (Place { places: self.clone(), number, _descriptor: descriptor }, Evicted(evicted))
    }

    /// Closes all connections.
    fn close_all(&self) {
        self.table().connections.clear();
    }

    /// Returns when no connection is left open.
    pub async fn all_closed(&self) {
        let all = u32::try_from(self.capacity.descriptors()).unwrap_or(u32::MAX);
        let _ = self.descriptors.acquire_many(all).await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes when the connection must end.
#[derive(Debug)]
struct Evicted(oneshot::Receiver<()>);

impl Evicted {
    async fn wait(self) {
        // The sender is dropped; nothing is ever sent.
        let _ = self.0.await;
    }

    /// Serves a connection until another needs its place.
    async fn interrupts(self, served: impl Future<Output = ()>) {
        tokio::select! {
            // First, so that no request begins after the eviction.
            biased;
            () = self.wait() => tracing::debug!("closed an unauthenticated connection to make room"),
            () = served => {}
        }
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    _descriptor: OwnedSemaphorePermit,
}

impl Place {
    /// Notes that a request begins; it ends when the returned value is dropped.
    pub fn request(&self) -> OpenRequest<'_> {
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
            (self.places.on_last_closed)();
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct OpenRequest<'a>(&'a Place);

impl OpenRequest<'_> {
    /// Notes that the request has credentials: from now on its connection is not evicted.
    pub fn has_credentials(&self) {
        let Place { places, number, .. } = self.0;
        places.table().request_is_call(&places.capacity, *number);
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.places.table().request_ends(self.0.number);
    }
}

/// Limits of a server for a few clients that show no credentials at a connection: probes, browsers.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of connections, of one address or of many.
    pub connections: usize,
    /// Time limit of the head of a request.
    pub head: Duration,
    /// Time limit of a connection that is closed after its only answer; without one, connections are
    /// kept open.
    pub whole: Option<Duration>,
}

/// Answers requests until this future is dropped, which closes all connections.
pub async fn serve<B, F>(
    listener: TcpListener,
    limits: Limits,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
{
    struct CloseAll(Arc<Places>);
    impl Drop for CloseAll {
        fn drop(&mut self) {
            self.0.close_all();
        }
    }
    let Limits { connections, head, whole } = limits;
    let capacity = Capacity { connections, per_address: connections };
    let places = CloseAll(Places::new(capacity, || (), || ()));
    let connection = move |stream: TcpStream, _: Origin, place: Place| {
        let answer = answer.clone();
        async move {
            let service = service_fn(|request| {
                let (open, answered) = (place.request(), answer(request));
                async move {
                    let answer = answered.await;
                    drop(open);
                    Ok::<_, Infallible>(answer)
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head)
                .keep_alive(whole.is_none())
                .serve_connection(TokioIo::new(stream), service);
            // An error of one connection concerns only its client.
            let _ = timeout(whole.unwrap_or(Duration::MAX), connection).await;
        }
    };
    places.0.accept(listener, connection).await;
}

/// A boxed task: the runtime's code for tasks exists once, and not for each kind.
pub fn boxed(
    future: impl Future<Output = ()> + Send + 'static,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(future)
}

#[cfg(test)]
mod tests;
