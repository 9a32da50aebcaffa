//! The smallest HTTP/1.1 server that curl and a readiness probe can use: one request per
//! connection, one thread per connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Requests to the stand-in have no longer head and no longer document.
const MAX_BYTES: u64 = 64 * 1024;
/// A client that is silent for longer is disconnected.
const CLIENT_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A request, without its headers.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Decoded; a parameter without a value is `""`.
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Body,
    /// Methods of the route, for an answer to a wrong method.
    pub(super) allow: Option<&'static str>,
}

/// JSON, or the plain text of `_cat`.
#[derive(Debug)]
pub(super) enum Body {
    Json(Value),
    Text(String),
}

impl Answer {
    /// An answer in JSON.
    pub(super) fn json(status: u16, body: Value) -> Self {
        Self { status, body: Body::Json(body), allow: None }
    }

    /// An answer in plain text.
    pub(super) fn text(status: u16, text: String) -> Self {
        Self { status, body: Body::Text(text), allow: None }
    }
}

/// Answers requests in the background, for as long as the process lives.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                // A client that closed the connection needs no answer.
                let _ = exchange(stream, answer.as_ref());
            });
        }
    });
}

fn exchange(stream: TcpStream, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_READ_TIMEOUT))?;
    let mut head_only = false;
    let answer = match read_request(&mut BufReader::new((&stream).take(MAX_BYTES))) {
        Ok(request) => {
            head_only = request.method == "HEAD";
            answer(&request)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Answer::json(400, json!({"error": error.to_string(), "status": 400}))
        }
        Err(error) => return Err(error),
    };
    let (kind, body) = match answer.body {
        Body::Json(value) => ("application/json", format!("{value}\n")),
        Body::Text(text) => ("text/plain; charset=UTF-8", text),
    };
    let allow = answer.allow.map(|methods| format!("Allow: {methods}\r\n")).unwrap_or_default();
    write!(
        &stream,
        "HTTP/1.1 {} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n{}",
        answer.status,
        reason(answer.status),
        body.len(),
        if head_only { "" } else { &body },
    )
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Request> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(bad("the request line is not METHOD TARGET VERSION"));
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| bad("Content-Length is not a number"))?;
        }
    }
    if length as u64 > MAX_BYTES {
        return Err(bad("the document is too large for a stand-in"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let parameters = query.split('&').filter(|part| !part.is_empty());
    let query = parameters
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (decoded(name), decoded(&value.replace('+', " "))))
        .collect();
    Ok(Request { method, path: decoded(path), query, body })
}

/// Decodes percent-encoding; invalid parts stay as they are.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut done = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                done.push(code);
                at += 3;
            }
            None => {
                done.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&done).into_owned()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Bad Request",
    }
}
