//! Long polls of the managers of members under way: they report a change when it happens.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use stayput_api::Cursor;
use stayput_http::manager_client::ManagerClient;

/// Time that a manager may delay its answer.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after which a failed poll counts as a change. It counts only once until the manager was observed
/// again.
const FAILED_POLL_PAUSE: Duration = Duration::from_secs(1);

/// The running polls, by uid of the pod.
#[derive(Debug)]
pub(crate) struct ManagerPolls {
    running: BTreeMap<String, Poll>,
    /// Reported change of each manager: its cursor at the last observation, and that of the answer. The
    /// change is not reported again while the next look fails.
    reported: BTreeMap<String, (Cursor, Cursor)>,
    changes: mpsc::UnboundedReceiver<Change>,
    sender: mpsc::UnboundedSender<Change>,
}

#[derive(Debug)]
struct Poll {
    /// Cursor of the manager at the last observation.
    observed: Cursor,
    /// Cursor from which the manager has to differ.
    from: Cursor,
    /// True if a change was reported since, so that a failed poll is no news.
    is_known: bool,
    task: AbortHandle,
}

#[derive(Debug)]
struct Change {
    uid: String,
    from: Cursor,
    /// Cursor of the answer; equal to `from` without an answer.
    to: Cursor,
}

impl Default for ManagerPolls {
    fn default() -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        Self { running: BTreeMap::new(), reported: BTreeMap::new(), changes, sender }
    }
}

impl ManagerPolls {
    /// Polls exactly these managers from now on, each by its cursor at the last observation.
    pub(super) fn set(&mut self, wanted: Vec<(String, ManagerClient, Cursor)>) {
        let mut before = std::mem::take(&mut self.running);
        let reported = std::mem::take(&mut self.reported);
        for (uid, client, observed) in wanted {
            let told = reported.get(&uid).filter(|(of, _)| *of == observed);
            let (from, is_known) = (told.map_or(&observed, |(_, to)| to).clone(), told.is_some());
            if let Some(told) = told {
                self.reported.insert(uid.clone(), told.clone());
            }
            let task = match before.remove(&uid) {
                Some(known) if known.from == from && known.is_known == is_known => known.task,
                other => {
                    if let Some(known) = other {
                        known.task.abort();
                    }
                    self.spawn(uid.clone(), client, from.clone(), is_known)
                }
            };
            self.running.insert(uid, Poll { observed, from, is_known, task });
        }
        for poll in before.into_values() {
            poll.task.abort();
        }
    }

    fn spawn(
        &self,
        uid: String,
        client: ManagerClient,
        from: Cursor,
        is_known: bool,
    ) -> AbortHandle {
        let sender = self.sender.clone();
        let poll = async move {
            let to = loop {
                match client.status_after(&from, POLL_TIMEOUT).await {
                    Ok(None) => {}
                    Ok(Some(answer)) => break answer.status.cursor,
                    Err(_) => {
                        sleep(FAILED_POLL_PAUSE).await;
                        if !is_known {
                            break from.clone();
                        }
                    }
                }
            };
            // Without a receiver the task of the SearchCluster has ended.
            let _ = sender.send(Change { uid, from, to });
        };
        tokio::spawn(poll).abort_handle()
    }

    /// Completes when one of the managers has changed.
    pub(super) async fn changed(&mut self) {
        // This struct holds a sender, so the channel never closes.
        while let Some(Change { uid, from, to }) = self.changes.recv().await {
            if self.running.get(&uid).is_some_and(|poll| poll.from == from) {
                if let Some(poll) = self.running.remove(&uid) {
                    self.reported.insert(uid, (poll.observed, to));
                }
                return;
            }
        }
    }
}

impl Drop for ManagerPolls {
    fn drop(&mut self) {
        for poll in self.running.values() {
            poll.task.abort();
        }
    }
}
