//! Connections to one server that are kept for the next request.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{self, Instant};

use super::exchange::{AnyError, connect, send, within};
use super::target::Stream;
use super::{Bounds, ExchangeError, NoAnswer, Target};

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

    /// Like [`super::exchange`], on a kept connection if there is one. A server may close such a
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
