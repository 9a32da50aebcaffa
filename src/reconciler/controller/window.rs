//! Where a SearchCluster's task is asked to show what it sees, from outside the loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::worker::Key;
use stayput_restart::Saved;

/// So many may wait for the same SearchCluster.
const QUEUE: usize = 4;
/// How long a pass in hand and the look after it may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was seen, or in a sentence why nothing was.
pub(super) type Shown = Result<Box<Saved>, String>;
/// Somebody who wants to see it.
pub(super) type Viewer = oneshot::Sender<Shown>;

type Open = Mutex<BTreeMap<Key, mpsc::Sender<Viewer>>>;

/// The windows of all SearchClusters that are looked after.
#[derive(Debug, Default, Clone)]
pub(super) struct Windows(Arc<Open>);

/// The window of one SearchCluster; it closes when dropped.
#[derive(Debug)]
pub(super) struct Window {
    key: Key,
    viewers: mpsc::Receiver<Viewer>,
    windows: Windows,
}

impl Windows {
    /// Opens the window of a SearchCluster.
    pub(super) fn open(&self, key: Key) -> Window {
        let (sender, viewers) = mpsc::channel(QUEUE);
        self.lock().insert(key.clone(), sender);
        Window { key, viewers, windows: self.clone() }
    }

    /// Asks the task of a SearchCluster to look.
    pub(super) async fn look(&self, namespace: &str, name: &str) -> Shown {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(window) = self.lock().get(&key).cloned() else {
            return Err(format!(
                "SearchCluster {namespace}/{name} is not looked after here: there is none of that \
                 name, another namespace or another replica is meant, or the watches are not in \
                 sync yet"
            ));
        };
        let (viewer, shown) = oneshot::channel();
        if window.try_send(viewer).is_err() {
            return Err(format!("{QUEUE} others are waiting to see {namespace}/{name}: try again"));
        }
        match timeout(PATIENCE, shown).await {
            Ok(Ok(shown)) => shown,
            Ok(Err(_)) => Err(format!("{namespace}/{name} is let go of just now: try again")),
            Err(_) => Err(format!(
                "{namespace}/{name} was not looked at within {} s: try again",
                PATIENCE.as_secs()
            )),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, mpsc::Sender<Viewer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    /// The next who wants to see. Never completes while there is nobody.
    pub(super) async fn viewer(&mut self) -> Viewer {
        match self.viewers.recv().await {
            Some(viewer) => viewer,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A task that took over may have opened its own.
        let closed = |window: &mut mpsc::Sender<Viewer>| window.is_closed();
        self.viewers.close();
        let mut windows = self.windows.lock();
        if windows.get_mut(&self.key).is_some_and(closed) {
            windows.remove(&self.key);
        }
    }
}
