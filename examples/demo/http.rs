//! One HTTP exchange, as curl would do it: over the manager's socket or the engine's port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer is allowed to take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `null` if there was none.
    pub(crate) body: Value,
}

/// Asks the manager that listens on `socket`.
pub(crate) fn ask_manager(
    socket: &Path,
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Result<Answer, String> {
    let stream = UnixStream::connect(socket)
        .and_then(|stream| stream.set_read_timeout(Some(PATIENCE)).map(|()| stream))
        .map_err(|error| format!("the manager cannot be reached: {error}"))?;
    exchange(stream, method, target, body)
}

/// Asks the engine at `address`.
pub(crate) fn ask_engine(
    address: (&str, u16),
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Result<Answer, String> {
    let stream = TcpStream::connect(address)
        .and_then(|stream| stream.set_read_timeout(Some(PATIENCE)).map(|()| stream))
        .map_err(|error| format!("the engine cannot be reached: {error}"))?;
    exchange(stream, method, target, body)
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> Result<Answer, String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut answer = Vec::new();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .and_then(|()| stream.read_to_end(&mut answer))
    .map_err(|error| format!("{method} {target}: the exchange broke off: {error}"))?;

    let answer = String::from_utf8_lossy(&answer);
    let read = || {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = match body.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).ok()?,
        };
        Some(Answer { status, body })
    };
    read().ok_or_else(|| format!("{method} {target}: this is no HTTP with JSON: {answer:?}"))
}
