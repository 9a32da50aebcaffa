//! Managers that no decision waits for: those of nodes that are not under way. One that hangs delays no look;
//! its answer, or its silence, counts at the next one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::poll::{Answer, STATUS_TIMEOUT, ask_one};
use crate::concurrency::join_limited;
use crate::credentials::ClientOfPod;
use crate::metrics::Metrics;

/// Time without a further answer after which a look goes on without the missing ones.
const NEXT_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The managers with an open request.
#[derive(Debug)]
pub(crate) struct Background {
    /// Uids of the pods whose managers have an open request.
    asked: BTreeSet<String>,
    /// Uids of those that are expected to answer, because they did the last time.
    expected: BTreeSet<String>,
    tasks: JoinSet<()>,
    answers: UnboundedReceiver<Answer>,
    sender: UnboundedSender<Answer>,
}

impl Default for Background {
    fn default() -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let (asked, expected) = (BTreeSet::new(), BTreeSet::new());
        Self { asked, expected, tasks: JoinSet::new(), answers, sender }
    }
}

impl Background {
    /// True if the manager of this pod has an open request.
    pub(super) fn is_asking(&self, uid: &str) -> bool {
        self.asked.contains(uid)
    }

    /// True if any manager has an open request.
    pub(super) fn is_busy(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Sends requests to these managers; `is_silent` is true for those that are not expected to answer.
    pub(crate) fn begin(
        &mut self,
        clients: Vec<ClientOfPod>,
        metrics: &Arc<Metrics>,
        is_silent: impl Fn(&str) -> bool,
    ) {
        if clients.is_empty() {
            return;
        }
        for (facts, _) in &clients {
            self.asked.insert(facts.uid.clone());
            if !is_silent(&facts.uid) {
                self.expected.insert(facts.uid.clone());
            }
        }
        let (sender, metrics) = (self.sender.clone(), Arc::clone(metrics));
        self.tasks.spawn(async move {
            let ask = async |client| {
                // Without a receiver the task of the SearchCluster has ended.
                let _ = sender.send(ask_one(client, STATUS_TIMEOUT, &metrics).await);
            };
            join_limited(clients.into_iter().map(ask).collect()).await;
        });
    }

    /// The answers that have come: waits until all expected ones have, or no further one comes.
    pub(crate) async fn answers(&mut self) -> Vec<Answer> {
        let mut all = Vec::new();
        while !self.expected.is_empty() {
            match timeout(NEXT_ANSWER_TIMEOUT, self.answers.recv()).await {
                Ok(Some(answer)) => self.take(answer, &mut all),
                Ok(None) | Err(_) => break,
            }
        }
        while let Ok(answer) = self.answers.try_recv() {
            self.take(answer, &mut all);
        }
        // No look waits for the same manager twice.
        self.expected.clear();
        while self.tasks.try_join_next().is_some() {}
        all
    }

    fn take(&mut self, answer: Answer, all: &mut Vec<Answer>) {
        self.asked.remove(&answer.facts.uid);
        self.expected.remove(&answer.facts.uid);
        all.push(answer);
    }
}

#[cfg(test)]
mod tests {
    use stayput_http::manager_client::{Address, ManagerClient};
    use tokio::net::UnixListener;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::pods::{PodFacts, Reading};

    fn pod(uid: &str) -> Arc<PodFacts> {
        let pod = serde_json::json!({
            "metadata": { "name": uid, "namespace": "n", "uid": uid, "resourceVersion": "1" },
        });
        Arc::new(PodFacts::of(&serde_json::from_value(pod).unwrap(), &Reading::default()).unwrap())
    }

    #[tokio::test(start_paused = true)] // proves RESTART-15
    async fn a_manager_that_hangs_delays_one_look_by_a_second_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("mute");
        // It never accepts.
        let _mute = UnixListener::bind(&socket).unwrap();
        let client = || ManagerClient::new(Address::Socket(socket.clone()));
        let hangs = || vec![(pod("hangs"), Ok(client().unwrap()))];
        let metrics = Arc::new(Metrics::new());
        let mut background = Background::default();
        let began = Instant::now();
        background.begin(hangs(), &metrics, |_| false);
        assert!(background.answers().await.is_empty());
        assert_eq!(began.elapsed(), Duration::from_secs(1));
        // The next look.
        assert!(background.answers().await.is_empty());
        assert!(began.elapsed() == Duration::from_secs(1) && background.is_asking("hangs"));
        sleep(STATUS_TIMEOUT).await;
        let late = background.answers().await;
        assert!(late.len() == 1 && late[0].result.is_err() && !background.is_busy(), "{late:?}");
        // It is known now that it does not answer.
        let began = Instant::now();
        background.begin(hangs(), &metrics, |uid| uid == "hangs");
        assert!(background.answers().await.is_empty());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
