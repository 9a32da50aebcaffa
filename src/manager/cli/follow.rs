//! Follows the status by long polls.

use std::time::Duration;

use tokio::time;

use stayput_api::{Code, Cursor};
use stayput_net::manager_client::{Answer, ClientError, ManagerClient};

/// How long one poll waits for a change.
pub(super) const POLL: Duration = Duration::from_secs(30);
/// How long to leave a manager alone that is not there (its container may be restarting), or that
/// does not wait as it was asked to.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A reader of one status after the other.
#[derive(Debug)]
pub(super) struct Follower<'a> {
    client: &'a ManagerClient,
    poll: Duration,
    cursor: Option<Cursor>,
    reached: bool,
}

impl<'a> Follower<'a> {
    /// A follower that begins with the current status.
    pub(super) const fn new(client: &'a ManagerClient, poll: Duration) -> Self {
        Self { client, poll, cursor: None, reached: false }
    }

    /// The next status; also, after a poll without a change, the current one once more, because
    /// asking for it is what makes the manager ask its readiness probe.
    ///
    /// A manager that was there and is not any more is waited for without end: bound it.
    pub(super) async fn next(&mut self) -> Result<Answer, ClientError> {
        loop {
            match self.ask().await {
                Ok(answer) => {
                    self.reached = true;
                    self.cursor = Some(answer.status.cursor.clone());
                    return Ok(answer);
                }
                Err(ClientError::NotReachable(_) | ClientError::Unanswered(_)) if self.reached => {
                    self.cursor = None;
                    time::sleep(PAUSE).await;
                }
                // Too many follow it already: look now and then instead.
                Err(ClientError::Refused(refused))
                    if refused.problem.code == Code::TooManyWaiting =>
                {
                    self.cursor = None;
                    time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask(&self) -> Result<Answer, ClientError> {
        if let Some(cursor) = &self.cursor
            && let Some(answer) = self.client.status_after(cursor, self.poll).await?
        {
            return Ok(answer);
        }
        self.client.status().await
    }
}
