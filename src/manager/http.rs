//! The API server: listeners, TLS, authentication, routes.
//!
//! ```text
//! accept ─► place ─► handshake ─► peer ─► route ─► caller ─► scope ─► body ─► supervisor's handle
//! server.rs         connection.rs         routes.rs                   body.rs handlers.rs
//! ```
//! Keys and certificates are one value (`key_files.rs`) that is replaced when their files change
//! (`reload.rs`), and the last certificate is kept (`tls.rs`). A fault of a key file or an
//! address is reported, and retried until it is over (`binding.rs`, `reload.rs`): the rest is
//! served meanwhile. This module uses the supervisor through its handle only.

mod auth;
mod binding;
mod body;
mod connection;
mod handlers;
mod key_files;
mod reload;
mod routes;
mod server;
mod settings;
mod tls;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{sleep, timeout};

use crate::metrics::Metrics;
use crate::supervisor::Handle;
use auth::RefusalLog;
use connection::Handshakes;
use handlers::LastReady;
pub(crate) use handlers::{Outcome, start_outcome, stop_outcome};
use stayput_api::Status;
use stayput_http::server::Capacity;
use tls::CheckedKeys;

pub use routes::{Access, ROUTES, Route};
pub use server::Server;
pub use settings::{HttpSettings, parse_listen};
pub use tls::{KeptPair, TlsMin};

/// How long the supervisor may take for a reply that it usually gives at once.
const SUPERVISOR_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits on connections and requests. Those that are numbers are for each listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from the first byte of a connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// Time from the end of one request to the last header of the next: cuts slow and idle clients.
    pub header: Duration,
    /// Time from the last header to the end of the body.
    pub body: Duration,
    /// The longest `wait`, and the longest time in which a long poll is answered.
    pub max_wait: Duration,
    /// After this time a connection is closed when its request is answered, so that no client can
    /// call for long with a certificate that has expired.
    pub max_age: Duration,
    /// How long the manager, when it ends, waits for requests to be answered.
    pub drain: Duration,
    /// Number of connections. A further one takes the place of one that has shown no credentials.
    pub connections: usize,
    /// Number of requests that may wait for a change at the same time: fewer than the connections,
    /// so that waiting requests never block other requests.
    pub waiting: usize,
}

impl Limits {
    const DEFAULT: Self = Self {
        handshake: Duration::from_secs(10),
        header: Duration::from_secs(15),
        body: Duration::from_secs(10),
        max_wait: Duration::from_secs(5 * 60),
        max_age: Duration::from_secs(60 * 60),
        drain: Duration::from_secs(2),
        connections: 64,
        waiting: 40,
    };

    /// The limits, reduced so that the connections of both listeners use less than half of the
    /// descriptors that the process may have: journal, config and the engine's start need some.
    #[must_use]
    fn within(self, descriptors: usize) -> Self {
        let connections = self.connections.min(descriptors / 8).max(4);
        Self { connections, waiting: self.waiting.min(connections * 5 / 8), ..self }
    }

    /// Number of connections of each listener.
    fn capacity(&self) -> Capacity {
        Capacity { connections: self.connections, per_address: self.connections.div_ceil(2) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The listener that a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenerKind {
    Tcp,
    Unix,
}

/// How far the server has shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shutdown {
    NotStarted,
    /// No new requests; waiting requests are answered.
    Draining,
    /// Open connections are closed.
    Closing,
}

/// State that all requests share.
#[derive(Debug)]
struct Context {
    handle: Handle,
    keys: CheckedKeys,
    shutdown: watch::Receiver<Shutdown>,
    limits: Limits,
    open_metrics: bool,
    metrics: Metrics,
    refusals: RefusalLog,
    /// The status that was serialized last, and its JSON.
    serialized: Mutex<Option<(Arc<Status>, Bytes)>>,
    waiting: Semaphore,
    local_waiting: Semaphore,
    handshakes: Handshakes,
    last_ready: LastReady,
}

impl Context {
    fn new(
        handle: Handle,
        keys: CheckedKeys,
        shutdown: watch::Receiver<Shutdown>,
        limits: Limits,
        open_metrics: bool,
    ) -> Self {
        Self {
            handle,
            keys,
            shutdown,
            limits,
            open_metrics,
            metrics: Metrics::default(),
            refusals: RefusalLog::default(),
            serialized: Mutex::default(),
            waiting: Semaphore::new(limits.waiting),
            local_waiting: Semaphore::new(limits.waiting),
            handshakes: Handshakes::new(limits.handshake),
            last_ready: LastReady::default(),
        }
    }

    /// The status as JSON. Each version is serialized once, so that frequent requests are cheap.
    fn serialized(&self, status: &Arc<Status>) -> Bytes {
        let mut last = self.serialized.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, bytes)) = last.as_ref()
            && Arc::ptr_eq(version, status)
        {
            return bytes.clone();
        }
        // Strings, numbers and bools only: serializing them does not fail.
        let bytes = Bytes::from(serde_json::to_vec(&**status).unwrap_or_default());
        *last = Some((status.clone(), bytes.clone()));
        bytes
    }

    /// The status after a call of the readiness probe, or `None` if that takes too long.
    async fn probed_status(&self) -> Option<Arc<Status>> {
        let status = self.handle.status();
        if status.ready.is_none() {
            // There is no probe to call.
            return Some(status);
        }
        timeout(SUPERVISOR_REPLY_TIMEOUT, self.handle.fresh_status()).await.ok()
    }

    /// Permission to wait, valid until it is dropped; `None` if so many requests wait that one more
    /// would take connections that other requests need.
    fn permit_to_wait(&self, listener: ListenerKind) -> Option<SemaphorePermit<'_>> {
        let waiting = match listener {
            ListenerKind::Tcp => &self.waiting,
            ListenerKind::Unix => &self.local_waiting,
        };
        waiting.try_acquire().ok()
    }

    /// True if the supervisor's loop replies.
    async fn is_alive(&self) -> bool {
        timeout(SUPERVISOR_REPLY_TIMEOUT, self.handle.answers()).await.unwrap_or(false)
    }

    /// True if the server shuts down: waiting requests are answered at once.
    fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow() > Shutdown::NotStarted
    }

    /// Waits for a status for which `check` returns something, and returns that. `None` if `limit`
    /// was over, or the server shut down, before that.
    async fn wait_for_status<T>(
        &self,
        limit: Duration,
        mut check: impl FnMut(&Arc<Status>) -> Option<T>,
    ) -> Option<T> {
        let (mut status, mut shutdown) = (self.handle.subscribe(), self.shutdown.clone());
        let end = sleep(limit.min(self.limits.max_wait));
        tokio::pin!(end);
        loop {
            let found = check(&status.borrow_and_update());
            if found.is_some() {
                return found;
            }
            tokio::select! {
                // The status is checked first, so that a change in the last moment is still
                // reported.
                biased;
                changed = status.changed() => changed.ok()?,
                _ = shutdown.wait_for(|shutdown| *shutdown > Shutdown::NotStarted) => return None,
                () = &mut end => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
