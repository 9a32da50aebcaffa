//! A typed client of the manager's HTTP API, over its unix socket or over TLS.
//!
//! One connection per request: calls are rare, and a connection that is not kept cannot be stale.
//! What the manager's status says beyond the fields this version knows is ignored here and kept in
//! [`Answer::body`].

mod address;
mod bearer;
mod error;
pub mod fleet;
mod reply;

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, StatusCode};
use serde::Serialize;

use crate::https::{self, Bounds, Target};
use stayput_api::{Cursor, StartRequest, Status, StopRequest};

pub use address::{Address, Credentials, Token};
pub use error::{ClientError, Refused};

use reply::Reply;

/// How long the manager may take to answer, beside any wait that was asked for.
const PATIENCE: Duration = Duration::from_secs(15);
/// How much of it may go into connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The largest answer taken: a status with a thousand config files is a tenth of it.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// Talks to one manager. Cheap to make, once its [`Credentials`] are.
#[derive(Debug, Clone)]
pub struct ManagerClient {
    target: Target,
    token: Option<Token>,
    pod: Option<String>,
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
    /// A client of the manager at `address`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Credentials`] if the address cannot be used.
    pub fn new(address: Address) -> Result<Self, ClientError> {
        let (target, token) = address.into_parts().map_err(ClientError::Credentials)?;
        Ok(Self { target, token, pod: None, patience: PATIENCE })
    }

    /// Means the manager of the pod with this uid and no other: requests carry the uid unless they
    /// name a pod themselves, and an answer of another pod is [`ClientError::WrongPod`].
    #[must_use]
    pub fn for_pod(mut self, uid: impl Into<String>) -> Self {
        self.pod = Some(uid.into());
        self
    }

    /// Bounds how long one call may take, connecting included, beside any wait that was asked for.
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
        self.answer(reply)
    }

    /// Waits up to `timeout` for a status other than the one `cursor` names; `None` if there was
    /// none in that time.
    ///
    /// Cancel-safe: dropping the future ends the wait on both sides, and nothing is lost, because
    /// the next call with the same cursor is answered with what was missed.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status_after(
        &self,
        cursor: &Cursor,
        timeout: Duration,
    ) -> Result<Option<Answer>, ClientError> {
        let after = reply::escape(&cursor.0);
        let path = format!("/es/status?after={after}&timeout={}ms", timeout.as_millis());
        let reply = self.send(Method::GET, &path, Bytes::new(), timeout).await?;
        if reply.status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let answer = self.answer(reply)?;
        if answer.status.cursor == *cursor {
            // Without this, a caller that follows the status would ask without a pause.
            return Err(ClientError::Protocol(format!(
                "the manager at {} answered a wait for a change with the unchanged status",
                self.target
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
        let pod = request.pod.clone().or_else(|| self.pod.clone());
        self.post("/es/stop", &StopRequest { pod, ..request.clone() }, wait).await
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
        let pod = request.pod.clone().or_else(|| self.pod.clone());
        self.post("/es/start", &StartRequest { pod, ..request.clone() }, wait).await
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
        let reply = self.send(Method::POST, &path, Bytes::from(body), wait).await?;
        self.answer(reply)
    }

    /// Sends one request; `wait` is what the manager was asked to hold the answer back for.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<Reply, ClientError> {
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            let header = bearer::header(token).map_err(ClientError::Credentials)?;
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(body).map_err(|error| {
            ClientError::Protocol(format!("the request cannot be written: {error}"))
        })?;
        let whole = self.patience.saturating_add(wait);
        let bounds = Bounds { connect: CONNECT, whole, answer: MAX_ANSWER };
        let response = https::exchange(&self.target, request, bounds)
            .await
            .map_err(|error| ClientError::of_exchange(error, &self.target))?;
        Ok(Reply::new(response, self.target.to_string()))
    }

    /// The good answer of the manager that was meant.
    fn answer(&self, reply: Reply) -> Result<Answer, ClientError> {
        let answer = reply.into_answer()?;
        let (Some(meant), found) = (&self.pod, &answer.status.manager.pod.uid) else {
            return Ok(answer);
        };
        if found.as_ref() == Some(meant) {
            return Ok(answer);
        }
        Err(ClientError::WrongPod(match found {
            Some(found) => format!(
                "the manager at {} belongs to the pod with uid {found}, not {meant}: was the pod \
                 replaced, or its address given to another?",
                self.target
            ),
            None => format!(
                "the manager at {} does not know its pod, so it cannot be told whether it is \
                 {meant}: give it STAYPUT_POD_UID from the downward API",
                self.target
            ),
        }))
    }
}
