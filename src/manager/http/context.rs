//! Shared by all requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{sleep, timeout};

use super::auth::RefusalLog;
use super::checked_keys::CheckedKeys;
use super::handshake::Handshakes;
use super::limits::Limits;
use super::ready::LastReady;
use crate::metrics::Metrics;
use crate::supervisor::Handle;
use stayput_api::Status;

/// How long the supervisor may take for a reply that it usually gives at once.
const SUPERVISOR_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The listener that a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerKind {
    Tcp,
    Unix,
}

/// How far the server has shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shutdown {
    NotStarted,
    /// No new requests; waiting requests are answered.
    Draining,
    /// Open connections are closed.
    Closing,
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) handle: Handle,
    pub(super) keys: CheckedKeys,
    pub(super) shutdown: watch::Receiver<Shutdown>,
    pub(super) limits: Limits,
    pub(super) open_metrics: bool,
    pub(super) metrics: Metrics,
    pub(super) refusals: RefusalLog,
    /// The status that was serialized last, and its JSON.
    serialized: Mutex<Option<(Arc<Status>, Bytes)>>,
    waiting: Semaphore,
    local_waiting: Semaphore,
    pub(super) handshakes: Handshakes,
    pub(super) last_ready: LastReady,
}

impl Context {
    pub(super) fn new(
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
    pub(super) fn serialized(&self, status: &Arc<Status>) -> Bytes {
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
    pub(super) async fn probed_status(&self) -> Option<Arc<Status>> {
        let status = self.handle.status();
        if status.ready.is_none() {
            // There is no probe to call.
            return Some(status);
        }
        timeout(SUPERVISOR_REPLY_TIMEOUT, self.handle.fresh_status()).await.ok()
    }

    /// Permission to wait, valid until it is dropped; `None` if so many requests wait that one more
    /// would take connections that other requests need.
    pub(super) fn permit_to_wait(&self, listener: ListenerKind) -> Option<SemaphorePermit<'_>> {
        let waiting = match listener {
            ListenerKind::Tcp => &self.waiting,
            ListenerKind::Unix => &self.local_waiting,
        };
        waiting.try_acquire().ok()
    }

    /// True if the supervisor's loop replies.
    pub(super) async fn is_alive(&self) -> bool {
        timeout(SUPERVISOR_REPLY_TIMEOUT, self.handle.answers()).await.unwrap_or(false)
    }

    /// True if the server shuts down: waiting requests are answered at once.
    pub(super) fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow() > Shutdown::NotStarted
    }

    /// Waits for a status for which `check` returns something, and returns that. `None` if `limit`
    /// was over, or the server shut down, before that.
    pub(super) async fn wait_for_status<T>(
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
