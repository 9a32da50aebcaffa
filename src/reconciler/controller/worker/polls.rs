//! Long polls to the managers of nodes that are on their way: a change is known when it happens.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use stayput_api::Cursor;
use stayput_net::manager_client::ManagerClient;

/// How long a manager holds its answer back.
const HELD: Duration = Duration::from_secs(60);
/// One that cannot be polled is looked at no sooner than this.
const PAUSE: Duration = Duration::from_secs(1);

/// The polls that are out, by the uid of the pod.
#[derive(Debug)]
pub(super) struct Polls {
    out: BTreeMap<String, (Cursor, AbortHandle)>,
    news: mpsc::UnboundedReceiver<(String, Cursor)>,
    tell: mpsc::UnboundedSender<(String, Cursor)>,
}

impl Default for Polls {
    fn default() -> Self {
        let (tell, news) = mpsc::unbounded_channel();
        Self { out: BTreeMap::new(), news, tell }
    }
}

impl Polls {
    /// Waits for changes of exactly these from now on.
    pub(super) fn set(&mut self, wanted: Vec<(String, ManagerClient, Cursor)>) {
        let mut before = std::mem::take(&mut self.out);
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
            self.out.insert(uid, (cursor, poll));
        }
        for (_, poll) in before.into_values() {
            poll.abort();
        }
    }

    fn spawn(&self, uid: String, client: ManagerClient, cursor: Cursor) -> AbortHandle {
        let tell = self.tell.clone();
        let poll = async move {
            loop {
                match client.status_after(&cursor, HELD).await {
                    Ok(None) => {}
                    Ok(Some(_)) => break,
                    Err(_) => {
                        sleep(PAUSE).await;
                        break;
                    }
                }
            }
            // If nobody listens any more, nobody needs to know.
            let _ = tell.send((uid, cursor));
        };
        tokio::spawn(poll).abort_handle()
    }

    /// Completes when one of them has changed.
    pub(super) async fn changed(&mut self) {
        // We hold a sender, so there is always a next one to wait for.
        while let Some((uid, cursor)) = self.news.recv().await {
            if self.out.get(&uid).is_some_and(|(known, _)| *known == cursor) {
                self.out.remove(&uid);
                return;
            }
        }
    }
}

impl Drop for Polls {
    fn drop(&mut self) {
        for (_, poll) in self.out.values() {
            poll.abort();
        }
    }
}
