//! One request and its whole answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{self, Instant};

use super::target::Stream;
use super::{ExchangeError, NoAnswer, Target};

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
pub(super) struct TooLarge;

/// Error because of which an answer did not arrive: of hyper, or [`TooLarge`].
pub(super) type AnyError = Box<dyn Error + Send + Sync>;

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

pub(super) async fn connect(
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

pub(super) async fn within<T>(
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

pub(super) async fn send(
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
