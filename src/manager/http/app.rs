//! What all requests share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{sleep, timeout};

use super::limits::Limits;
use super::material::Material;
use crate::metrics::Metrics;
use crate::supervisor::Handle;
use stayput_api::Status;

/// How long the supervisor may take for what it does at once when it is well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Through which listener a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// The one on the network.
    Network,
    /// The unix socket.
    Local,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Not begun.
    Open,
    /// No new requests; those that wait are answered.
    Draining,
    /// What is left is cut off.
    Cut,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) handle: Handle,
    pub(super) material: watch::Receiver<Arc<Material>>,
    pub(super) stage: watch::Receiver<Stage>,
    pub(super) limits: Limits,
    pub(super) open_metrics: bool,
    pub(super) metrics: Metrics,
    /// The last serialized status and what it was made of.
    serialized: Mutex<Option<(Arc<Status>, Bytes)>>,
    waiting: Semaphore,
    local_waiting: Semaphore,
}

impl App {
    pub(super) fn new(
        handle: Handle,
        material: watch::Receiver<Arc<Material>>,
        stage: watch::Receiver<Stage>,
        limits: Limits,
        open_metrics: bool,
    ) -> Self {
        Self {
            handle,
            material,
            stage,
            limits,
            open_metrics,
            metrics: Metrics::default(),
            serialized: Mutex::default(),
            waiting: Semaphore::new(limits.waiting),
            local_waiting: Semaphore::new(limits.local_waiting),
        }
    }

    /// The status as JSON. Made once per version: whoever asks often costs a copy of a pointer.
    pub(super) fn serialized(&self, status: &Arc<Status>) -> Bytes {
        let mut last = self.serialized.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_of, bytes)) = last.as_ref()
            && Arc::ptr_eq(made_of, status)
        {
            return bytes.clone();
        }
        // Strings, numbers and bools only: serializing them does not fail.
        let bytes = Bytes::from(serde_json::to_vec(&**status).unwrap_or_default());
        *last = Some((status.clone(), bytes.clone()));
        bytes
    }

    /// The status after a look at the readiness probe, or `None` if that takes too long.
    pub(super) async fn probed(&self) -> Option<Arc<Status>> {
        let status = self.handle.status();
        if status.ready.is_none() {
            // There is no probe, so there is nothing to ask the supervisor for.
            return Some(status);
        }
        timeout(PATIENCE, self.handle.fresh_status()).await.ok()
    }

    /// A place to wait in, as long as it is kept; `None` if so many wait already that the next one
    /// would take the connections of those who act.
    pub(super) fn place_to_wait(&self, door: Door) -> Option<SemaphorePermit<'_>> {
        let places = match door {
            Door::Network => &self.waiting,
            Door::Local => &self.local_waiting,
        };
        places.try_acquire().ok()
    }

    /// Whether the supervisor's loop turns.
    pub(super) async fn is_alive(&self) -> bool {
        timeout(PATIENCE, self.handle.answers()).await.unwrap_or(false)
    }

    /// Follows the status until `judge` has something to say about it. `None` if it had not when
    /// the time was over or the manager ends.
    pub(super) async fn follow<T>(
        &self,
        limit: Duration,
        mut judge: impl FnMut(&Arc<Status>) -> Option<T>,
    ) -> Option<T> {
        let (mut status, mut stage) = (self.handle.subscribe(), self.stage.clone());
        let end = sleep(limit.min(self.limits.max_wait));
        tokio::pin!(end);
        loop {
            let verdict = judge(&status.borrow_and_update());
            if verdict.is_some() {
                return verdict;
            }
            tokio::select! {
                // The status first: what came to hold in the last moment is still told.
                biased;
                changed = status.changed() => changed.ok()?,
                _ = stage.wait_for(|stage| *stage > Stage::Open) => return None,
                () = &mut end => return None,
            }
        }
    }
}
