//! One request, one answer, on a connection of its own.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time;

use super::transport::{Stream, Transport};
use super::{Answer, ClientError, Refused};
use crate::api::Problem;

/// The largest answer taken: a status with a thousand config files is a tenth of it.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// The largest token file taken.
const MAX_TOKEN: usize = 16 * 1024;

/// An answer that has not been looked into.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    content_type: String,
    body: Bytes,
    from: String,
}

/// Sends one request and reads its whole answer within `patience`.
pub(super) async fn exchange(
    transport: &Transport,
    method: Method,
    path: &str,
    body: Bytes,
    patience: Duration,
) -> Result<Reply, ClientError> {
    let request = request(transport, method, path, body)?;
    let stream = transport.connect().await?;
    let unanswered = |what: String| {
        ClientError::Unanswered(format!(
            "{what}; whether the manager at {transport} acted on the request is not known: \
             look at its status"
        ))
    };
    match time::timeout(patience, talk(stream, request)).await {
        Ok(Ok((status, content_type, body))) => {
            Ok(Reply { status, content_type, body, from: transport.to_string() })
        }
        Ok(Err(error)) => Err(unanswered(format!("no whole answer: {error}"))),
        Err(_) => Err(unanswered(format!("no answer within {} s", patience.as_secs()))),
    }
}

fn request(
    transport: &Transport,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut builder = Request::builder().method(method).uri(path).header(HOST, transport.host());
    if !body.is_empty() {
        builder = builder.header(CONTENT_TYPE, "application/json");
    }
    if let Some(path) = transport.token() {
        builder = builder.header(AUTHORIZATION, bearer(path).map_err(ClientError::Credentials)?);
    }
    builder
        .body(Full::new(body))
        .map_err(|error| ClientError::Protocol(format!("the request cannot be written: {error}")))
}

/// The header that carries the token. The token is in no message, and marked so that no log of
/// headers shows it.
fn bearer(path: &Path) -> Result<HeaderValue, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the token file {shown} cannot be read: {error}"))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(format!("the token file {shown} is empty"));
    }
    if token.len() > MAX_TOKEN || token.contains(char::is_whitespace) {
        return Err(format!("the token file {shown} does not hold one JWT and nothing else"));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| format!("the token file {shown} holds characters no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}

type Talk = Result<(StatusCode, String, Bytes), Box<dyn std::error::Error + Send + Sync>>;

async fn talk(stream: Box<dyn Stream>, request: Request<Full<Bytes>>) -> Talk {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let conversation = async move {
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok((head.status, content_type.unwrap_or("nothing said").to_owned(), body))
        // Dropping `sender` here ends `connection`.
    };
    // The connection does the I/O of the conversation. Once there is a whole answer, how the
    // connection ends is of no interest.
    let (talk, _) = tokio::join!(conversation, connection);
    talk
}

impl Reply {
    /// The answer, if it is a good one.
    pub(super) fn into_answer(self) -> Result<Answer, ClientError> {
        if self.status != StatusCode::OK && self.status != StatusCode::ACCEPTED {
            return Err(self.into_error());
        }
        match serde_json::from_slice(&self.body) {
            Ok(status) => {
                Ok(Answer { done: self.status == StatusCode::OK, status, body: self.body })
            }
            Err(error) => Err(self.foreign(&format!("no status we know: {error}"))),
        }
    }

    fn into_error(self) -> ClientError {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => {
                ClientError::Refused(Refused { problem: Box::new(problem), body: self.body })
            }
            Err(_) => match told(&self.body) {
                Some(sentence) => self.foreign(&sentence),
                None => self.foreign(&self.content_type),
            },
        }
    }

    fn foreign(&self, what: &str) -> ClientError {
        ClientError::Protocol(format!(
            "{} answered HTTP {} with {what}: is it a stayput manager, and not a newer one \
             than this client?",
            self.from,
            self.status.as_u16()
        ))
    }
}

/// Code and sentence of a problem whose code this version does not know.
fn told(body: &[u8]) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(format!("{}: {}", problem.get("code")?.as_str()?, problem.get("detail")?.as_str()?))
}

/// Makes a text safe inside a query value. Colons stay: cursors have them, and a query may.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_change_the_query() {
        assert_eq!(escape("b7f1:17"), "b7f1:17");
        assert_eq!(escape("a&b=c d\n"), "a%26b%3Dc%20d%0A");
    }

    #[test]
    fn tells_a_problem_of_a_newer_manager() {
        let body = br#"{"code":"moon_phase","detail":"wait for the full moon","status":409}"#;
        assert_eq!(told(body), Some("moon_phase: wait for the full moon".into()));
        assert_eq!(told(b"<html>"), None);
    }
}
