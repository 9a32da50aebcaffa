//! HTTP over the unix socket, one connection for each request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Longer than any wait that a test requests from the manager.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer; a body that is no JSON is a JSON string.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Value,
}

impl Answer {
    /// The problem's code; empty if it is none.
    pub(super) fn problem(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The problem's `detail`; empty if it is none.
    pub(super) fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }
}

/// Sends a request and reads the whole answer.
pub(super) fn ask(socket: &Path, method: &str, target: &str, body: &str) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: stayput\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::other(format!("no whole answer: {answer:?}")))
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    let body = match body {
        "" => Value::Null,
        body => serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())),
    };
    Some(Answer { code, body })
}
