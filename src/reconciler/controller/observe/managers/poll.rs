//! Asking many managers for their status at the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::controller::credentials::{ClientOfPod, CredentialsError};
use crate::controller::metrics::{Metrics, Side};
use crate::controller::pods::Facts;
use stayput_api::Status;
use stayput_net::manager_client::{ClientError, ManagerClient, fleet};

/// How long one manager may take to answer.
pub(in crate::controller) const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after the first one another manager is still asked in the same observation: where
/// hundreds do not answer, the others are asked in the next one.
const ASKING_WINDOW: Duration = Duration::from_secs(10);

/// An answer, or why there is none.
pub(in crate::controller::observe) struct Answer {
    pub(super) facts: Arc<Facts>,
    pub(super) client: Option<ManagerClient>,
    pub(super) result: Result<Status, NoAnswer>,
}

/// Why a manager gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// Nothing was sent.
    #[error(transparent)]
    Credentials(Arc<CredentialsError>),
    #[error(transparent)]
    Failed(ClientError),
    /// There was no time left in this observation.
    #[error("not asked yet: other managers are slow to answer")]
    NotAsked,
}

/// Asks all of them at the same time, started in their order.
pub(in crate::controller::observe) async fn ask(
    clients: Vec<ClientOfPod>,
    metrics: &Metrics,
) -> Vec<Answer> {
    let mut all = Vec::with_capacity(clients.len());
    let mut asked = Vec::with_capacity(clients.len());
    for (facts, client) in clients {
        match client {
            Ok(client) => asked.push((facts, client)),
            Err(error) => {
                let result = Err(NoAnswer::Credentials(error));
                all.push(Answer { facts, client: None, result });
            }
        }
    }
    let end = Instant::now() + ASKING_WINDOW;
    let call = |(facts, client): &(Arc<Facts>, ManagerClient)| {
        let client = client.clone();
        (facts.uid.clone(), async move {
            match Instant::now() < end {
                // Only the status is kept: there may be ten thousand answers at once.
                true => client.status().await.map(|answer| Some(answer.status)),
                false => Ok(None),
            }
        })
    };
    let mut answers = fleet::ask_all(asked.iter().map(call).collect(), STATUS_TIMEOUT).await;
    for (facts, client) in asked {
        let Some(answer) = answers.remove(&facts.uid) else { continue };
        let result = match answer {
            Ok(None) => Err(NoAnswer::NotAsked),
            Ok(Some(status)) => Ok(status),
            Err(error) => Err(NoAnswer::Failed(error)),
        };
        if !matches!(result, Err(NoAnswer::NotAsked)) {
            metrics.count_request(Side::Manager, "status", result.is_ok());
        }
        all.push(Answer { facts, client: Some(client), result });
    }
    all
}
