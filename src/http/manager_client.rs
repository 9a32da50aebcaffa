//! A typed client of the manager's HTTP API, over its unix socket or over TLS.
//!
//! One connection per request. One that is used once cannot be stale, and each checks the client
//! certificate. To keep one would gain a handshake of a few milliseconds in a node's turn, and nothing at rest:
//! there, calls are rarer than the 15 seconds after which a manager closes idle connections, and it gives memory
//! back when it has none.
//! Fields of the status that this version does not know are ignored; [`Answer::body`] has them.

mod address;
mod error;
pub mod fleet;
mod reply;
mod token;

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, StatusCode};
use serde::Serialize;

use crate::https::{self, Bounds, Target};
use stayput_api::{Cursor, DrainRequest, StartRequest, Status, StopRequest, UpgradeRequest};

pub use address::{Address, AddressError, Credentials};
pub use error::{
    ClientError, CredentialsError, NotReachable, ProtocolError, Refused, Unanswered, Untrusted,
    WrongPod,
};
pub use token::{Token, TokenError};

use reply::Reply;

/// How long the manager may take to answer, in addition to a wait that was requested.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Part of the answer timeout that connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer accepted, in bytes: a status with a thousand config files is a quarter of it. A refusal
/// may hold a whole status.
const MAX_ANSWER: usize = 1024 * 1024;

/// Client of one manager. Cheap to make, once its [`Credentials`] are.
#[derive(Debug, Clone)]
pub struct ManagerClient {
    target: Target,
    token: Option<Token>,
    pod: Option<String>,
    answer_timeout: Duration,
}

/// The manager's good answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// True if the request is done (200); otherwise it is in progress (202).
    pub done: bool,
    /// The sequence of the stop or start that was accepted, if the manager says it: the status may
    /// be about a later request.
    pub sequence: Option<u64>,
    /// The status that came with the answer.
    pub status: Status,
    /// The answer's body, byte for byte.
    pub body: Bytes,
    /// Time by the manager's clock, in seconds since 1970.
    pub date: Option<u64>,
    /// Milliseconds by which the times of the status are ahead of the manager's time of day; an
    /// older manager does not report them.
    pub times_ahead: Option<i64>,
}

impl ManagerClient {
    /// A client of the manager at `address`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Credentials`] if the address cannot be used.
    pub fn new(address: Address) -> Result<Self, ClientError> {
        let (target, token) = address.into_parts().map_err(CredentialsError::Address)?;
        Ok(Self { target, token, pod: None, answer_timeout: ANSWER_TIMEOUT })
    }

    /// Accepts only the manager of the pod with this uid: requests carry the uid unless they name a
    /// pod themselves, and an answer of another pod is [`ClientError::WrongPod`].
    #[must_use]
    pub fn for_pod(mut self, uid: impl Into<String>) -> Self {
        self.pod = Some(uid.into());
        self
    }

    /// Sets how long one call may take, connecting included, in addition to a wait that was
    /// requested. For tests: they cannot wait for [`ANSWER_TIMEOUT`].
    #[must_use]
    pub const fn with_answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
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

    /// Waits up to `timeout` for another status than the one with `cursor`; `None` if there was none
    /// in that time.
    ///
    /// Cancel-safe: dropping the future ends the wait on both sides, and nothing is lost, because
    /// the next call with the same cursor returns what was missed.
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
            // Without this check, a caller that follows the status would send requests without a
            // pause.
            let manager = self.target.to_string();
            return Err(ProtocolError::UnchangedStatus { manager }.into());
        }
        Ok(Some(answer))
    }

    /// Requests a stop; with `wait`, the manager answers when it is done or that time is over.
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

    /// Requests that another version of the manager takes over.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn upgrade(&self) -> Result<Answer, ClientError> {
        self.post("/es/upgrade", &UpgradeRequest {}, None).await
    }

    /// Requests a start; with `wait`, the manager answers when it is done or that time is over.
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

    /// Requests a drain ahead of a stop.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn drain(&self, request: &DrainRequest) -> Result<Answer, ClientError> {
        let pod = request.pod.clone().or_else(|| self.pod.clone());
        self.post("/es/drain", &DrainRequest { pod, ..request.clone() }, None).await
    }

    async fn post<T: Serialize>(
        &self,
        route: &str,
        request: &T,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let body = serde_json::to_vec(request).map_err(ProtocolError::Body)?;
        let path = match wait {
            Some(wait) => format!("{route}?wait={}ms", wait.as_millis()),
            None => route.to_owned(),
        };
        let wait = wait.unwrap_or_default();
        let reply = self.send(Method::POST, &path, Bytes::from(body), wait).await?;
        self.answer(reply)
    }

    /// Sends one request; `wait` is how long the manager was asked to delay its answer.
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
            let header = token::header(token).map_err(CredentialsError::Token)?;
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(body).map_err(ProtocolError::Request)?;
        let whole = self.answer_timeout.saturating_add(wait);
        let bounds =
            Bounds { connect: CONNECT_TIMEOUT, whole, answer: MAX_ANSWER, refusal: MAX_ANSWER };
        let response = https::exchange(&self.target, request, bounds)
            .await
            .map_err(|error| ClientError::of_exchange(error, &self.target))?;
        Ok(Reply::new(response, self.target.to_string()))
    }

    /// Returns the answer if it is a good one and comes from the right manager.
    fn answer(&self, reply: Reply) -> Result<Answer, ClientError> {
        let answer = reply.into_answer()?;
        let (Some(wanted), found) = (&self.pod, &answer.status.manager.pod.uid) else {
            return Ok(answer);
        };
        if found.as_ref() == Some(wanted) {
            return Ok(answer);
        }
        let (manager, wanted) = (self.target.to_string(), wanted.clone());
        Err(match found.clone() {
            Some(found) => WrongPod::Other { manager, found, wanted }.into(),
            None => WrongPod::Unknown { manager, wanted }.into(),
        })
    }
}
