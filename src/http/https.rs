//! One HTTP/1.1 exchange over TCP, TLS or a unix socket, bounded in time and size: on a connection of
//! its own, or on one that was kept.
//!
//! A connection that is used once cannot be stale, so an error always says whether the request can
//! have been sent. [`Kept`] is for requests that may be sent twice. [`Tls`] is shared: it is built
//! once per cluster and cheap to clone. If a server issues TLS tickets, the clones resume each other's sessions. Managers issue none, so that each
//! connection checks the client certificate.

mod target;
mod tls;

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use std::{fmt, io};

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{DATE, HOST};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{self, Instant};

pub use target::{ExchangeError, NoAnswer, Stream, Target};
pub use tls::{FROM_1_2, Identity, ONLY_1_3, Pem, Tls, Versions};

/// How long an exchange may take, and how large its answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How long connecting may take, with name resolution and TLS handshake.
    pub connect: Duration,
    /// How long the whole exchange may take, connecting included.
    pub whole: Duration,
    /// The largest body accepted of a success (2xx), in bytes.
    pub answer: usize,
    /// How many bytes are read of any other body; the rest is left unread.
    pub refusal: usize,
}

/// The body of a success is larger than accepted.
#[derive(Debug, thiserror::Error)]
#[error("the answer is too large")]
struct TooLarge;

/// Error because of which an answer did not arrive: of hyper, or [`TooLarge`].
type AnyError = Box<dyn Error + Send + Sync>;

/// Sends one request, whose URI is path and query, and reads its whole answer. `Host` is filled in.
///
/// Dropping the future closes the connection. Then, as with [`ExchangeError::Unanswered`], it is
/// not known whether the request had its effect.
///
/// # Errors
/// See [`ExchangeError`].
pub async fn exchange(
    target: &Target,
    mut request: Request<Bytes>,
    bounds: Bounds,
) -> Result<Response<Bytes>, ExchangeError> {
    request.headers_mut().insert(HOST, target.authority());
    let began = Instant::now();
    let stream = connect(target, began, bounds).await?;
    let answer = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async move { send(&mut sender, request, bounds).await };
        // The connection does the I/O of the exchange, and ends when `sender` is dropped. When the
        // answer is complete, it does not matter how the connection ends.
        let (answer, _) = tokio::join!(exchange, connection);
        answer
    };
    within(began, bounds, answer).await
}

async fn connect(
    target: &Target,
    began: Instant,
    bounds: Bounds,
) -> Result<Box<dyn Stream>, ExchangeError> {
    let connect = bounds.connect.min(bounds.whole);
    let until = (Instant::now() + connect).min(began + bounds.whole);
    match time::timeout_at(until, target.connect()).await {
        Ok(connected) => connected,
        Err(_) => {
            let message = format!("no connection within {}", humantime::format_duration(connect));
            Err(io::Error::new(io::ErrorKind::TimedOut, message).into())
        }
    }
}

async fn within<T>(
    began: Instant,
    bounds: Bounds,
    answer: impl Future<Output = Result<T, AnyError>>,
) -> Result<T, ExchangeError> {
    match time::timeout_at(began + bounds.whole, answer).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) if error.is::<TooLarge>() => Err(NoAnswer::TooLarge(bounds.answer).into()),
        Ok(Err(error)) => Err(NoAnswer::Interrupted(error).into()),
        Err(_) => Err(NoAnswer::Timeout(bounds.whole).into()),
    }
}

async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Bytes>,
    bounds: Bounds,
) -> Result<Response<Bytes>, AnyError> {
    let (head, mut body) = sender.send_request(request.map(Full::new)).await?.into_parts();
    let is_refusal = !head.status.is_success();
    let limit = if is_refusal { bounds.refusal } else { bounds.answer };
    let length = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    // A cluster state has megabytes. Frames that are collected first would take them twice.
    let mut whole = Vec::with_capacity(length.min(limit));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let fits = data.len().min(limit - whole.len());
        whole.extend_from_slice(&data[..fits]);
        if fits < data.len() {
            if is_refusal {
                break;
            }
            return Err(TooLarge.into());
        }
    }
    Ok(Response::from_parts(head, whole.into()))
}

/// Number of connections that are kept; more requests at the same time use connections of their own.
const MOST: usize = 4;
/// Longest idle time of a kept connection: something in between may have forgotten an older one.
const LONGEST_IDLE: Duration = Duration::from_secs(90);

/// Connections to one server, for requests that may be sent twice. They are closed when this is
/// dropped. No timer runs for them: the old ones are closed by the next request, or by
/// [`Kept::close_old`].
pub struct Kept {
    target: Target,
    /// Idle connections; the one that was used last comes last.
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// Dropping it closes the connection.
type Connection = SendRequest<Full<Bytes>>;

impl Kept {
    /// A value for this server, without connections.
    pub const fn new(target: Target) -> Self {
        Self { target, idle: Mutex::new(Vec::new()) }
    }

    /// The server.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Like [`exchange`], on a kept connection if there is one. A server may close such a
    /// connection at any time, also while the request is on its way: then it is sent once more, on
    /// a new connection. So the request must be one that may be sent twice.
    ///
    /// # Errors
    /// See [`ExchangeError`].
    pub async fn exchange(
        &self,
        mut request: Request<Bytes>,
        bounds: Bounds,
    ) -> Result<Response<Bytes>, ExchangeError> {
        request.headers_mut().insert(HOST, self.target.authority());
        let began = Instant::now();
        if let Some(mut kept) = self.take() {
            let answer = send(&mut kept, request.clone(), bounds);
            match within(began, bounds, answer).await {
                Ok(response) => {
                    self.keep(kept, began + bounds.whole).await;
                    return Ok(response);
                }
                Err(ExchangeError::Unanswered(NoAnswer::Interrupted(_))) => {}
                Err(error) => return Err(error),
            }
        }
        let stream = connect(&self.target, began, bounds).await?;
        let answer = async {
            let mut new = open(stream).await?;
            Ok((send(&mut new, request, bounds).await?, new))
        };
        let (response, new) = within(began, bounds, answer).await?;
        self.keep(new, began + bounds.whole).await;
        Ok(response)
    }

    /// Closes the connections that were not used for long.
    pub fn close_old(&self) {
        self.idle().retain(Idle::is_usable);
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(Idle::is_usable);
        Some(idle.pop()?.connection)
    }

    /// Keeps the connection once it can take another request, which it soon can after a whole
    /// answer, unless the server closes it.
    async fn keep(&self, mut connection: Connection, until: Instant) {
        if let Ok(Ok(())) = time::timeout_at(until, connection.ready()).await {
            let mut idle = self.idle();
            if idle.len() < MOST {
                idle.push(Idle { connection, since: Instant::now() });
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn open(stream: Box<dyn Stream>) -> Result<Connection, AnyError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It does the I/O, and notices at any time that the server closes the connection. How it ended
    // is seen by the request that it was used for, if there was one.
    tokio::spawn(connection);
    Ok(sender)
}

impl Idle {
    fn is_usable(&self) -> bool {
        !self.connection.is_closed() && self.since.elapsed() < LONGEST_IDLE
    }
}

/// Shows the server, and the number of kept connections.
impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kept({}, {})", self.target, self.idle().len())
    }
}

/// Time of a server's answer in seconds since 1970, if its `Date` can be read.
pub fn answer_time(headers: &HeaderMap) -> Option<u64> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        let read = |date: &'static str| {
            answer_time(&[(DATE, date.parse().unwrap())].into_iter().collect())
        };
        // `date -ud '2026-11-23 05:00:07' +%s`
        assert_eq!(read("Mon, 23 Nov 2026 05:00:07 GMT"), Some(1_795_410_007));
        assert_eq!(read("yesterday"), None);
        assert_eq!(answer_time(&HeaderMap::new()), None);
    }
}
