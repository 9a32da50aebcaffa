//! Plain HTTP/1.1 over any stream. No code of the product is used, so answers are read as any
//! client would read them.

use std::io::{self, Read, Write};

use serde_json::Value;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// A string if the body is no JSON; null if there is none.
    pub body: Value,
}

impl Answer {
    /// The body, if the status is this one; otherwise panics.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "answered {:#}", self.body);
        self.body
    }

    /// The body, if it is this refusal; otherwise panics.
    #[track_caller]
    pub fn expect_problem(self, status: u16, problem: &str) -> Value {
        assert_eq!(self.body["code"], problem, "answered {}: {:#}", self.status, self.body);
        self.expect(status)
    }
}

/// Sends one request and reads the answer to its end.
pub fn exchange(
    stream: impl Read + Write,
    request: (&str, &str),
    body: Option<&Value>,
) -> io::Result<Answer> {
    exchange_text(stream, request, &body.map(ToString::to_string).unwrap_or_default())
}

/// The same with the value of the header `Authorization`.
pub fn exchange_as(
    stream: impl Read + Write,
    authorization: &str,
    request: (&str, &str),
    body: Option<&Value>,
) -> io::Result<Answer> {
    let header = format!("Authorization: {authorization}\r\n");
    send(stream, request, &header, &body.map(ToString::to_string).unwrap_or_default())
}

/// The same with a body that need not be JSON.
pub fn exchange_text(
    stream: impl Read + Write,
    request: (&str, &str),
    body: &str,
) -> io::Result<Answer> {
    send(stream, request, "", body)
}

fn send(
    mut stream: impl Read + Write,
    (method, target): (&str, &str),
    header: &str,
    body: &str,
) -> io::Result<Answer> {
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let malformed = || io::Error::other(format!("not an answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status =
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    let is_chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
    let body = if is_chunked { joined(body).ok_or_else(malformed)? } else { body.to_owned() };
    let body = match serde_json::from_str(&body) {
        Ok(body) => body,
        Err(_) if body.is_empty() => Value::Null,
        Err(_) => Value::String(body),
    };
    Ok(Answer { status, body })
}

/// The content of a body in chunks: Elasticsearch 8 sends cluster states in this way.
fn joined(chunked: &str) -> Option<String> {
    let (mut content, mut rest) = (String::new(), chunked);
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(content);
        }
        content.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}
