//! Requests for a snapshot of one SearchCluster, from the HTTP server to the task of that cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::clusters::Key;
use stayput_kube_access::random_id::NoRandomNumbers;
use stayput_restart::Saved;

/// Limit of the requests that wait for the same SearchCluster.
const QUEUE: usize = 4;
/// Time limit of the reconcile under way and the observation after it.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(60);

/// A snapshot, or the reason why there is none.
pub(super) type Answer = Result<Box<Saved>, SnapshotError>;
/// Sender of the answer to one request.
pub(super) type Requester = oneshot::Sender<Answer>;

/// Reason why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    #[error(
        "SearchCluster {0} is not reconciled here: it does not exist, or it is in a namespace that \
         this reconciler does not watch, or another replica is the leader, or the watches are not \
         in sync yet"
    )]
    NotReconciledHere(String),
    #[error("{QUEUE} other requests wait for a snapshot of {0}: try again")]
    QueueFull(String),
    #[error("the task of {0} ended just now: try again")]
    TaskEnded(String),
    #[error("no snapshot of {0} within {seconds} s: try again", seconds = SNAPSHOT_TIMEOUT.as_secs())]
    Timeout(String),
    #[error("the SearchCluster is deleted")]
    Deleted,
    #[error("its spec is invalid: {0}")]
    InvalidSpec(String),
    #[error("{0}")]
    PodsUnlisted(String),
    #[error(transparent)]
    NoRandomNumbers(#[from] NoRandomNumbers),
}

type Open = Mutex<BTreeMap<Key, mpsc::Sender<Requester>>>;

/// The queues of all SearchClusters that are reconciled here.
#[derive(Debug, Default, Clone)]
pub(super) struct SnapshotQueues(Arc<Open>);

/// The queue of one SearchCluster; it closes when dropped.
#[derive(Debug)]
pub(super) struct SnapshotQueue {
    key: Key,
    requests: mpsc::Receiver<Requester>,
    queues: SnapshotQueues,
}

impl SnapshotQueues {
    /// Opens the queue of a SearchCluster.
    pub(super) fn open(&self, key: Key) -> SnapshotQueue {
        let (sender, requests) = mpsc::channel(QUEUE);
        self.lock().insert(key.clone(), sender);
        SnapshotQueue { key, requests, queues: self.clone() }
    }

    /// Asks the task of a SearchCluster for a snapshot.
    pub(super) async fn request(&self, namespace: &str, name: &str) -> Answer {
        let key = (namespace.to_owned(), name.to_owned());
        let cluster = format!("{namespace}/{name}");
        let Some(queue) = self.lock().get(&key).cloned() else {
            return Err(SnapshotError::NotReconciledHere(cluster));
        };
        let (requester, answer) = oneshot::channel();
        if queue.try_send(requester).is_err() {
            return Err(SnapshotError::QueueFull(cluster));
        }
        match timeout(SNAPSHOT_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(SnapshotError::TaskEnded(cluster)),
            Err(_) => Err(SnapshotError::Timeout(cluster)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, mpsc::Sender<Requester>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SnapshotQueue {
    /// The next request. Never completes while there is none.
    pub(super) async fn next(&mut self) -> Requester {
        match self.requests.recv().await {
            Some(requester) => requester,
            None => std::future::pending().await,
        }
    }
}

impl Drop for SnapshotQueue {
    fn drop(&mut self) {
        // A new task of the same SearchCluster may have opened its own queue already.
        let is_closed = |queue: &mut mpsc::Sender<Requester>| queue.is_closed();
        self.requests.close();
        let mut queues = self.queues.lock();
        if queues.get_mut(&self.key).is_some_and(is_closed) {
            queues.remove(&self.key);
        }
    }
}
