//! A typed client of the manager's HTTP API, over its unix socket or over TLS.
//!
//! One connection per request. One that is used once cannot be stale, and each checks the client
//! certificate. To keep one would gain a handshake of a few milliseconds in a node's turn, and nothing at rest:
//! there, calls are rarer than the 15 seconds after which a manager closes idle connections, and it gives memory
//! back when it has none.
//! Fields of the status that this version does not know are ignored; [`Answer::body`] has them.

mod address;
mod reply;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use tokio::time;

use crate::https::{self, Bounds, Target};
use reply::Reply;
use stayput_api::{Cursor, DrainRequest, StartRequest, Status, StopRequest, UpgradeRequest};

pub use address::{Address, Credentials};
pub use reply::{ClientError, Refused};

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
        let (target, token) = address.into_parts().map_err(ClientError::Credentials)?;
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

    /// True if the engine is ready as the kubelet is told: a readiness probe that fails for a moment does not count.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn is_ready(&self) -> Result<bool, ClientError> {
        let reply = self.send(Method::GET, "/readyz", Bytes::new(), Duration::ZERO).await?;
        Ok(reply.status == StatusCode::OK)
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
            return Err(ClientError::Protocol(format!(
                "the manager at {} answered a wait for a change with the unchanged status",
                self.target
            )));
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
        let body = serde_json::to_vec(request).map_err(|error| {
            ClientError::Protocol(format!("the request cannot be written as JSON: {error}"))
        })?;
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
            let header = header(token).map_err(ClientError::Credentials)?;
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(body).map_err(|error| {
            ClientError::Protocol(format!("the request is not valid HTTP: {error}"))
        })?;
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
        let manager = &self.target;
        Err(ClientError::WrongPod(match found {
            Some(found) => format!(
                "the manager at {manager} belongs to the pod with uid {found}, not {wanted}: was the \
                 pod replaced, or its address given to another?"
            ),
            None => format!(
                "the manager at {manager} does not know its pod, so it is not certain that it is \
                 {wanted}: give it STAYPUT_POD_UID from the downward API"
            ),
        }))
    }
}

/// How many calls run at the same time.
pub const MAX_CONCURRENT: usize = 16;

/// Makes all calls, in their order and at most [`MAX_CONCURRENT`] at a time, and returns the result
/// of each under its key. A call that takes longer than `deadline` from its own beginning is
/// dropped and counts as [`ClientError::Unanswered`]. So in total it takes at most `deadline` for
/// each [`MAX_CONCURRENT`] calls that hang.
///
/// Nothing is spawned: dropping the future drops every call. Of two calls with one key the result of
/// the one that ends last is returned.
pub async fn ask_all<K: Ord, T, F>(
    calls: Vec<(K, F)>,
    deadline: Duration,
) -> BTreeMap<K, Result<T, ClientError>>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut waiting = calls.into_iter();
    let mut answers = BTreeMap::new();
    // No stream combinators: their closures would make the future of a call that borrows its client
    // unusable in another thread.
    let mut under_way = FuturesUnordered::new();
    loop {
        let free = MAX_CONCURRENT - under_way.len();
        under_way.extend(waiting.by_ref().take(free).map(|(key, call)| ask(key, call, deadline)));
        let Some((key, answer)) = under_way.next().await else { return answers };
        answers.insert(key, answer);
    }
}

async fn ask<K, T>(
    key: K,
    call: impl Future<Output = Result<T, ClientError>>,
    deadline: Duration,
) -> (K, Result<T, ClientError>) {
    let answer = time::timeout(deadline, call).await;
    (key, answer.unwrap_or_else(|_| Err(ClientError::late(deadline))))
}

/// The largest token accepted, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// A JWT, or the file that contains it.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// The file that contains the token; read at every call, because the kubelet renews tokens in place.
    File(PathBuf),
    /// The token itself.
    Text(String),
}

/// Never shows the token.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Text(_) => formatter.write_str("Text(…)"),
        }
    }
}

/// Makes the `Authorization` header, marked so that no log of headers shows it.
///
/// # Errors
/// Why the token cannot be sent. No message contains it.
fn header(token: &Token) -> Result<HeaderValue, String> {
    let (name, text) = match token {
        Token::Text(text) => ("the token".to_owned(), Cow::from(text)),
        Token::File(path) => {
            let name = format!("the token file {}", path.display());
            match std::fs::read_to_string(path) {
                Ok(text) => (name, Cow::from(text)),
                Err(error) => return Err(format!("{name} cannot be read: {error}")),
            }
        }
    };
    let token = text.trim();
    if token.is_empty() {
        return Err(format!("{name} is empty"));
    }
    if token.len() > MAX_TOKEN || token.contains(char::is_whitespace) {
        return Err(format!("{name} does not hold one JWT and nothing else"));
    }
    let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {token}")) else {
        return Err(format!("{name} holds characters no token has"));
    };
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_width_run_at_once_and_each_keeps_its_own_result() {
        let (now, most) = (Cell::new(0), Cell::new(0));
        let call = async |index: u32| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            time::sleep(Duration::from_millis(u64::from(100 - index))).await;
            now.set(now.get() - 1);
            match index % 3 {
                0 => Err(ClientError::Protocol(index.to_string())),
                _ => Ok(index),
            }
        };
        let calls = (0..100).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(1)).await;
        assert_eq!((answers.len(), most.get(), now.get()), (100, MAX_CONCURRENT, 0));
        for (index, answer) in answers {
            match answer {
                Ok(own) => assert!(own == index && index % 3 != 0),
                Err(ClientError::Protocol(own)) => {
                    assert!(own == index.to_string() && index % 3 == 0);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_delay_the_rest_by_one_deadline_a_width() {
        let began = time::Instant::now();
        let call = async |index: usize| {
            if index < 2 * MAX_CONCURRENT { pending().await } else { Ok(began.elapsed()) }
        };
        let calls = (0..3 * MAX_CONCURRENT).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        for (index, answer) in answers {
            match answer {
                Ok(after) => {
                    assert!(index >= 2 * MAX_CONCURRENT && after <= Duration::from_secs(10))
                }
                Err(ClientError::Unanswered(_)) => assert!(index < 2 * MAX_CONCURRENT),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_delays_nobody() {
        let began = time::Instant::now();
        let call = async |index: u32| {
            if index == 0 {
                return pending().await;
            }
            time::sleep(Duration::from_millis(10)).await;
            Ok(began.elapsed())
        };
        let calls = (0..=15).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(5)).await;
        assert!(matches!(answers[&0], Err(ClientError::Unanswered(_))));
        let latest = answers.values().filter_map(|answer| answer.as_ref().ok()).max();
        assert_eq!(latest, Some(&Duration::from_millis(10)));
    }
}
