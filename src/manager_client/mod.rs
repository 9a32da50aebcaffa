//! A typed client of the manager's HTTP API, over its unix socket or over TLS.
//!
//! One connection per request: calls are rare, and a connection that is not kept cannot be stale.
//! What the manager's status says beyond the fields this version knows is ignored here and kept in
//! [`Answer::body`].

mod address;
mod error;
mod exchange;
mod tls;
mod transport;

use std::time::Duration;

use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use serde::Serialize;

use crate::api::{Cursor, StartRequest, Status, StopRequest};

pub use address::{Address, Credentials};
pub use error::{ClientError, Refused};

use exchange::Reply;
use transport::Transport;

/// How long the manager may take to answer, beside any wait that was asked for.
const PATIENCE: Duration = Duration::from_secs(15);

/// Talks to one manager.
#[derive(Debug)]
pub struct ManagerClient {
    transport: Transport,
    patience: Duration,
}

/// What the manager answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What was asked for holds (200); otherwise it is under way (202).
    pub done: bool,
    /// The status that came with the answer.
    pub status: Status,
    /// The answer's body, byte for byte.
    pub body: Bytes,
}

impl ManagerClient {
    /// A client of the manager at `address`. Nothing is sent yet; the CA and the client
    /// certificate are read now, the token at every call, because kubelet renews tokens in place.
    ///
    /// # Errors
    /// [`ClientError::Credentials`] if the address, the CA or the client certificate cannot be used.
    pub fn new(address: &Address) -> Result<Self, ClientError> {
        Ok(Self { transport: Transport::new(address)?, patience: PATIENCE })
    }

    /// Bounds how long one answer may take, beside any wait that was asked for.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The status now.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<Answer, ClientError> {
        let reply = self.send(Method::GET, "/es/status", Bytes::new(), Duration::ZERO).await?;
        reply.into_answer()
    }

    /// Waits up to `timeout` for a status other than the one `cursor` names; `None` if there was
    /// none in that time.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status_after(
        &self,
        cursor: &Cursor,
        timeout: Duration,
    ) -> Result<Option<Answer>, ClientError> {
        let after = exchange::escape(&cursor.0);
        let path = format!("/es/status?after={after}&timeout={}ms", timeout.as_millis());
        let reply = self.send(Method::GET, &path, Bytes::new(), timeout).await?;
        if reply.status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let answer = reply.into_answer()?;
        if answer.status.cursor == *cursor {
            // Without this, a caller that follows the status would ask without a pause.
            return Err(ClientError::Protocol(format!(
                "the manager at {} answered a wait for a change with the unchanged status",
                self.transport
            )));
        }
        Ok(Some(answer))
    }

    /// Asks for a stop; with `wait`, the answer is held back until it is done or that time is over.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn stop(
        &self,
        request: &StopRequest,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        self.post("/es/stop", request, wait).await
    }

    /// Asks for a start; with `wait`, the answer is held back until it is done or that time is over.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn start(
        &self,
        request: &StartRequest,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        self.post("/es/start", request, wait).await
    }

    async fn post<T: Serialize>(
        &self,
        route: &str,
        request: &T,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let body = serde_json::to_vec(request)
            .map_err(|error| ClientError::Protocol(format!("the request is no JSON: {error}")))?;
        let path = match wait {
            Some(wait) => format!("{route}?wait={}ms", wait.as_millis()),
            None => route.to_owned(),
        };
        let wait = wait.unwrap_or_default();
        self.send(Method::POST, &path, Bytes::from(body), wait).await?.into_answer()
    }

    /// Sends one request; `wait` is what the manager was asked to hold the answer back for.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<Reply, ClientError> {
        exchange::exchange(&self.transport, method, path, body, self.patience + wait).await
    }
}
