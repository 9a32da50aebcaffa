//! Long polls of the managers of members under way: a change is known when it happens.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use stayput_api::Cursor;
use stayput_net::manager_client::ManagerClient;

/// How long a manager may delay its answer.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// A poll that fails counts as a change, but not sooner than after this.
const FAILED_POLL_PAUSE: Duration = Duration::from_secs(1);

/// The polls that run, by the uid of the pod.
#[derive(Debug)]
pub(in crate::controller) struct ManagerPolls {
    running: BTreeMap<String, (Cursor, AbortHandle)>,
    changes: mpsc::UnboundedReceiver<(String, Cursor)>,
    sender: mpsc::UnboundedSender<(String, Cursor)>,
}

impl Default for ManagerPolls {
    fn default() -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        Self { running: BTreeMap::new(), changes, sender }
    }
}

impl ManagerPolls {
    /// Polls exactly these from now on.
    pub(super) fn set(&mut self, wanted: Vec<(String, ManagerClient, Cursor)>) {
        let mut before = std::mem::take(&mut self.running);
        for (uid, client, cursor) in wanted {
            let poll = match before.remove(&uid) {
                Some((known, poll)) if known == cursor => poll,
                other => {
                    if let Some((_, poll)) = other {
                        poll.abort();
                    }
                    self.spawn(uid.clone(), client, cursor.clone())
                }
            };
            self.running.insert(uid, (cursor, poll));
        }
        for (_, poll) in before.into_values() {
            poll.abort();
        }
    }

    fn spawn(&self, uid: String, client: ManagerClient, cursor: Cursor) -> AbortHandle {
        let sender = self.sender.clone();
        let poll = async move {
            loop {
                match client.status_after(&cursor, POLL_TIMEOUT).await {
                    Ok(None) => {}
                    Ok(Some(_)) => break,
                    Err(_) => {
                        sleep(FAILED_POLL_PAUSE).await;
                        break;
                    }
                }
            }
            // Without a receiver the task of the SearchCluster has ended.
            let _ = sender.send((uid, cursor));
        };
        tokio::spawn(poll).abort_handle()
    }

    /// Completes when one of them has changed.
    pub(super) async fn changed(&mut self) {
        // This struct holds a sender, so the channel never closes.
        while let Some((uid, cursor)) = self.changes.recv().await {
            if self.running.get(&uid).is_some_and(|(known, _)| *known == cursor) {
                self.running.remove(&uid);
                return;
            }
        }
    }
}

impl Drop for ManagerPolls {
    fn drop(&mut self) {
        for (_, poll) in self.running.values() {
            poll.abort();
        }
    }
}
