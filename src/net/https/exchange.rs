//! One request and its whole answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{self, Instant};

use super::target::Stream;
use super::{ExchangeError, Target};

/// What an exchange may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How long connecting may take, with name resolution and TLS handshake.
    pub connect: Duration,
    /// How long all of it may take, connecting included.
    pub whole: Duration,
    /// The largest body taken, in bytes.
    pub answer: usize,
}

/// Sends one request, whose URI is path and query, and reads its whole answer. `Host` is filled in.
///
/// Dropping the future closes the connection; like [`ExchangeError::Unanswered`], that leaves open
/// whether the request had its effect.
///
/// # Errors
/// See [`ExchangeError`].
pub async fn exchange(
    target: &Target,
    mut request: Request<Bytes>,
    bounds: Bounds,
) -> Result<Response<Bytes>, ExchangeError> {
    request.headers_mut().insert(HOST, target.authority());
    let now = Instant::now();
    let connect = bounds.connect.min(bounds.whole);
    let stream = match time::timeout_at(now + connect, target.connect()).await {
        Ok(connected) => connected?,
        Err(_) => {
            let sentence = format!("no connection within {}", humantime::format_duration(connect));
            let error = io::Error::new(io::ErrorKind::TimedOut, sentence);
            return Err(ExchangeError::NotConnected(error));
        }
    };
    let talk = talk(stream, request.map(Full::new), bounds.answer);
    match time::timeout_at(now + bounds.whole, talk).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ExchangeError::Unanswered(
            format!("the answer is larger than {} bytes", bounds.answer),
        )),
        Ok(Err(error)) => {
            Err(ExchangeError::Unanswered(format!("no whole answer: {}", with_sources(&*error))))
        }
        Err(_) => Err(ExchangeError::Unanswered(format!(
            "no answer within {}",
            humantime::format_duration(bounds.whole)
        ))),
    }
}

async fn talk(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    limit: usize,
) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let conversation = async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, limit).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
        // Dropping `sender` here ends `connection`.
    };
    // The connection does the I/O of the conversation. Once there is a whole answer, how the
    // connection ends is of no interest.
    let (answer, _) = tokio::join!(conversation, connection);
    answer
}

/// The error and what is behind it: hyper says "connection error" and keeps the reason inside.
fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let reason = source.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        next = source.source();
    }
    text
}
