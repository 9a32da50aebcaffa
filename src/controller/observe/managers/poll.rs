//! Asks many managers for their status. Those of nodes that are not under way are asked in the background:
//! one that hangs delays no look; its answer, or its silence, counts at the next one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stayput_api::Status;
use stayput_http::manager_client::{ClientError, ManagerClient};
use stayput_restart::Manager;
use tokio::sync::mpsc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::concurrency::join_limited;
use crate::credentials::{ClientOfPod, CredentialsError};
use crate::metrics::{Metrics, Side};
use crate::observe::now;
use crate::pods::PodFacts;

/// Time limit of one manager's answer.
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in one observation, from the first request, in which further managers are asked: where hundreds do
/// not answer, the others are asked in the next one.
const ASKING_WINDOW: Duration = Duration::from_secs(10);

/// A manager's answer, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) facts: Arc<PodFacts>,
    pub(super) client: Option<ManagerClient>,
    /// Time of the request, at the earliest.
    pub(super) asked_at: Instant,
    pub(super) result: Result<Told, NoAnswer>,
}

impl Answer {
    /// Uid of the pod.
    pub(crate) fn uid(&self) -> &str {
        &self.facts.uid
    }

    /// The manager's status, if it has answered.
    pub(crate) fn manager(&self) -> Option<Manager> {
        self.result.as_ref().ok().map(|told| Manager::from(&told.status))
    }
}

/// A manager's status, and the state of its clocks.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) status: Status,
    /// Lead of the manager's clock over ours, in seconds.
    pub(super) clock_ahead: i64,
    /// Lead of the times in the status over the manager's clock, in milliseconds.
    pub(super) times_ahead: i64,
}

/// Reason why a manager gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// Nothing was sent.
    #[error(transparent)]
    Credentials(Arc<CredentialsError>),
    #[error("{error}{}", crate::observe::managers::cause(*clock_ahead))]
    Failed {
        error: ClientError,
        /// Lead of the manager's clock over ours, in seconds, as far as it has answered.
        clock_ahead: i64,
    },
    /// The time of this observation was over before the manager's turn.
    #[error("not asked yet: other managers are slow to answer")]
    NotAsked,
}

/// Asks these managers, 16 at the same time, started in their order.
pub(crate) async fn ask(clients: Vec<ClientOfPod>, metrics: &Metrics) -> Vec<Answer> {
    let end = Instant::now() + ASKING_WINDOW;
    let ask = async |(facts, client): ClientOfPod| match (Instant::now() < end, client) {
        (true, client) => ask_one((facts, client), STATUS_TIMEOUT, metrics).await,
        (false, client) => {
            let result = Err(NoAnswer::NotAsked);
            Answer { facts, client: client.ok(), asked_at: Instant::now(), result }
        }
    };
    join_limited(clients.into_iter().map(ask).collect()).await
}

/// Asks one manager.
pub(super) async fn ask_one(
    (facts, client): ClientOfPod,
    deadline: Duration,
    metrics: &Metrics,
) -> Answer {
    let (asked_at, asked) = (Instant::now(), now());
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let result = Err(NoAnswer::Credentials(error));
            return Answer { facts, client: None, asked_at, result };
        }
    };
    let result = match timeout(deadline, client.status()).await {
        Ok(answer) => answer,
        Err(_) => Err(ClientError::late(deadline)),
    };
    let ahead = |date| crate::observe::managers::ahead(date, asked, now());
    metrics.count_request(Side::Manager, "status", result.is_ok());
    let result = match result {
        // Keeps only this part: there may be ten thousand answers at once.
        Ok(answer) => Ok(Told {
            status: answer.status,
            clock_ahead: ahead(answer.date),
            times_ahead: answer.times_ahead.unwrap_or_default(),
        }),
        Err(error) => {
            let date = match &error {
                ClientError::Refused(refused) => refused.date,
                _ => None,
            };
            Err(NoAnswer::Failed { error, clock_ahead: ahead(date) })
        }
    };
    Answer { facts, client: Some(client), asked_at, result }
}

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
mod tests;
