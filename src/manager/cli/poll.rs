//! Reads the status again and again, by long polls.

use std::time::Duration;

use tokio::time;

use stayput_api::{Code, Cursor};
use stayput_http::manager_client::{Answer, ClientError, ManagerClient};

/// How long one poll waits for a change.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay from a failed request to the next one: the manager's container may be restarting, or the
/// manager answers without waiting.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Reads one status after the other.
#[derive(Debug)]
pub(super) struct StatusPoller<'a> {
    client: &'a ManagerClient,
    poll_timeout: Duration,
    cursor: Option<Cursor>,
    reached: bool,
}

impl<'a> StatusPoller<'a> {
    /// Begins with the current status; `poll_timeout` is how long each poll waits.
    pub(super) const fn new(client: &'a ManagerClient, poll_timeout: Duration) -> Self {
        Self { client, poll_timeout, cursor: None, reached: false }
    }

    /// The next status; after a poll without a change, the current one again, because a request for
    /// it makes the manager call its readiness probe.
    ///
    /// Waits without end for a manager that was reached before: the caller needs a timeout.
    pub(super) async fn next(&mut self) -> Result<Answer, ClientError> {
        loop {
            match self.poll().await {
                Ok(answer) => {
                    self.reached = true;
                    self.cursor = Some(answer.status.cursor.clone());
                    return Ok(answer);
                }
                Err(ClientError::NotReachable(_) | ClientError::Unanswered(_)) if self.reached => {
                    self.cursor = None;
                    time::sleep(RETRY_DELAY).await;
                }
                // Too many clients poll it: read the status from time to time instead.
                Err(ClientError::Refused(refused))
                    if refused.problem.code == Code::TooManyWaiting =>
                {
                    self.cursor = None;
                    time::sleep(RETRY_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn poll(&self) -> Result<Answer, ClientError> {
        if let Some(cursor) = &self.cursor
            && let Some(answer) = self.client.status_after(cursor, self.poll_timeout).await?
        {
            return Ok(answer);
        }
        self.client.status().await
    }
}
