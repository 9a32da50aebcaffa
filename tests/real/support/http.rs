//! Plain HTTP/1.1 over any stream, with nothing of ours in between: what the answer says is what
//! any client would read.

use std::io::{self, Read, Write};

use serde_json::Value;

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// Null if the body is no JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// The body, if the code is this one.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "answered {:#}", self.body);
        self.body
    }

    /// The body, if this refusal is it.
    #[track_caller]
    pub(crate) fn expect_problem(self, code: u16, problem: &str) -> Value {
        assert_eq!(self.body["code"], problem, "answered {}: {:#}", self.code, self.body);
        self.expect(code)
    }
}

/// Sends one request and reads the answer to its end.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    (method, target): (&str, &str),
    body: Option<&Value>,
) -> io::Result<Answer> {
    let body = body.map(ToString::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let torn = || io::Error::other(format!("not an answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(torn)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(torn)?;
    let is_chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
    let body = if is_chunked { joined(body).ok_or_else(torn)? } else { body.to_owned() };
    Ok(Answer { code, body: serde_json::from_str(&body).unwrap_or_default() })
}

/// The content of a body in chunks: Elasticsearch 8 sends cluster states like that.
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
