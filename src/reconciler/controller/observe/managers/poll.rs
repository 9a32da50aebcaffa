//! Asking many managers for their status at the same time.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::clock;
use crate::controller::concurrency::join_limited;
use crate::controller::credentials::{ClientOfPod, CredentialsError};
use crate::controller::metrics::{Metrics, Side};
use crate::controller::observe::now;
use crate::controller::pods::Facts;
use stayput_api::Status;
use stayput_net::https::NoAnswer as NoReply;
use stayput_net::manager_client::{ClientError, ManagerClient, Unanswered};
use stayput_restart::Manager;

/// How long one manager may take to answer.
pub(in crate::controller) const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a manager may delay its answer until it has changed.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long after the first one another manager is still asked in the same observation: where
/// hundreds do not answer, the others are asked in the next one.
const ASKING_WINDOW: Duration = Duration::from_secs(10);

/// An answer, or why there is none.
#[derive(Debug)]
pub(in crate::controller::observe) struct Answer {
    pub(super) facts: Arc<Facts>,
    pub(super) client: Option<ManagerClient>,
    /// When the request was sent, at the earliest.
    pub(super) asked_at: Instant,
    pub(super) result: Result<Told, NoAnswer>,
}

impl Answer {
    /// Uid of the pod.
    pub(in crate::controller::observe) fn uid(&self) -> &str {
        &self.facts.uid
    }

    /// The next answer of its manager; waits for it until it has changed. One that cannot be asked does
    /// not change.
    pub(in crate::controller::observe) async fn next(&self) -> Self {
        let (Ok(told), Some(client)) = (&self.result, &self.client) else {
            return pending().await;
        };
        loop {
            let asked_at = Instant::now();
            match client.status_after(&told.status.cursor, POLL_TIMEOUT).await {
                Ok(None) => {}
                Ok(Some(next)) => {
                    // The answer was delayed: its date is not that of the request.
                    let clock_ahead = told.clock_ahead;
                    let times_ahead = next.times_ahead.unwrap_or_default();
                    let result = Ok(Told { status: next.status, clock_ahead, times_ahead });
                    let (facts, client) = (Arc::clone(&self.facts), Some(client.clone()));
                    return Self { facts, client, asked_at, result };
                }
                Err(_) => return pending().await,
            }
        }
    }

    /// Its manager; none if that has not answered.
    pub(in crate::controller::observe) fn manager(&self) -> Option<Manager> {
        self.result.as_ref().ok().map(|told| Manager::from(&told.status))
    }
}

/// What a manager has told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) status: Status,
    /// By how many seconds its clock is ahead of ours.
    pub(super) clock_ahead: i64,
    /// By how many milliseconds the times of the status are ahead of that clock.
    pub(super) times_ahead: i64,
}

/// Why a manager gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// Nothing was sent.
    #[error(transparent)]
    Credentials(Arc<CredentialsError>),
    #[error("{error}{}", clock::cause(*clock_ahead))]
    Failed {
        error: ClientError,
        /// By how many seconds its clock is ahead of ours, as far as it has answered.
        clock_ahead: i64,
    },
    /// There was no time left in this observation.
    #[error("not asked yet: other managers are slow to answer")]
    NotAsked,
}

/// Asks all of them, 16 at the same time, started in their order.
pub(in crate::controller::observe) async fn ask(
    clients: Vec<ClientOfPod>,
    metrics: &Metrics,
) -> Vec<Answer> {
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

/// Asks one.
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
        Err(_) => Err(Unanswered { manager: None, source: NoReply::Timeout(deadline) }.into()),
    };
    let ahead = |date| clock::ahead(date, asked, now());
    metrics.count_request(Side::Manager, "status", result.is_ok());
    let result = match result {
        // Only this is kept: there may be ten thousand answers at once.
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
